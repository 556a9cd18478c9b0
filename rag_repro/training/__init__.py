"""Training: adapters that teach the small readers to read, and the papers' own small models.

What is trained is named by a recipe (`recipes.yaml`), rebuilt by
`rag-repro train NAME`, and kept with a card under `artifacts/`.
"""
