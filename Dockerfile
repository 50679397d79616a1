FROM python:3.12-slim
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 HF_HUB_OFFLINE=1 GLIBC_TUNABLES=glibc.malloc.tcache_max=256
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
# torch for CPUs: PyPI's has several GB of CUDA. Alone and without dependencies, so that nothing else comes from that index.
RUN pip install --no-deps --constraint constraints.txt --index-url https://download.pytorch.org/whl/cpu torch
COPY posology posology
COPY prompts prompts
COPY strategies strategies
COPY policies policies
COPY orchestrator orchestrator
COPY workers workers
RUN pip install --constraint constraints.txt ".[models,train,mcp,monitor,ocr,oidc,otel,pdf,s3,bedrock,vertex]" && useradd --system --uid 999 --create-home posology \
    && mkdir /index /memory /cache /uploads && chown posology /index /memory /cache /uploads
USER posology
CMD ["posology", "--help"]
