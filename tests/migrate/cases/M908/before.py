import faiss  #: M908

index = faiss.IndexFlatL2(8)  #: M908
