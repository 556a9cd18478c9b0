"""What DRAGIN's released code decides, written a second time from its description, in plain loops.

It shares nothing with the package: strings and lists, one word after another.
"""

from __future__ import annotations


def words_of(tokens):
    """Lists of token numbers: a word begins with the first token and with white space."""
    words = []
    for i, token in enumerate(tokens):
        if i == 0 or token[0].isspace():
            words.append([])
        words[-1].append(i)
    return words


def spelled(tokens, word):
    return "".join(tokens[i] for i in word).strip()


def trigger(tokens, entropies, attention, threshold, sentences, content):
    """-> (triggered, kept text, hits as word numbers, (first, last) words of the sentence)

    attention[h][j][i]: how much token j looks at token i, of the new text alone. sentences,
    content: text -> its sentences; text -> its words that bear content.
    """
    heads, n = len(attention), len(tokens)
    most = []
    for i in range(n):
        per_head = [max(attention[h][j][i] for j in range(i, n)) for h in range(heads)]
        most.append(sum(per_head) / heads)
    words = words_of(tokens)
    weight = [sum(most[i] for i in word) for word in words]
    doubt = [sum(entropies[i] for i in word) / len(word) for word in words]
    texts = [spelled(tokens, word) for word in words]
    said = sentences("".join(tokens))
    first = 0
    for number, sentence in enumerate(said):
        last = len(words)
        if number < len(said) - 1:
            last = first
            for end in range(first + 1, len(words) + 1):
                if sentence in " ".join(texts[first:end]):
                    last = end
                    break
        if last == first:
            continue
        total = sum(weight[first:last])
        over = []
        for w in range(first, last):
            share = weight[w] / total if total else 0.0
            if share * (last - first) * doubt[w] > threshold:
                over.append(w)
        if over:
            real = content(sentence)
            hits = [w for w in over if any(c in texts[w] for c in real)]
            return True, " ".join(said[:number]), hits, (first, last)
        first = last
    return False, "".join(tokens), [], (0, 0)


def query(tokens, attention, hits, sentence, question, said, kept, again, content, top):
    """The words of the second reading that the hits look at most.

    again: tokens -> of the text that is read a second time, and its attention (heads, c, c).
    """
    words = words_of(tokens)
    current = [spelled(tokens, word) for word in words[sentence[0] : sentence[1]]]
    text = " ".join([question, said, kept, " ".join(current)])
    read, looks = again(text)
    anew = words_of(read)
    texts = [spelled(read, word) for word in anew]
    place = {w: len(anew) - len(current) + (w - sentence[0]) for w in hits}
    score = [0.0] * len(anew)
    for hit in place.values():
        first, rows = anew[hit][0], []
        for i in anew[hit]:
            if i == 0:
                continue
            row = [sum(head[i - 1][j] for head in looks) / len(looks) for j in range(first)]
            rows.append([x / sum(row) for x in row])
        for w, word in enumerate(anew):
            for i in word:
                if i < first and rows:
                    score[w] += sum(row[i] for row in rows) / len(rows) / len(hits)
    real = content(text)
    fine = [
        w for w in range(len(anew)) if w not in place.values() and any(c in texts[w] for c in real)
    ]
    best = sorted(fine, key=lambda w: score[w], reverse=True)[:top]
    return " ".join(texts[w] for w in sorted(best))
