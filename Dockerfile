FROM python:3.12-slim
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 HF_HUB_OFFLINE=1
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY posology posology
COPY prompts prompts
COPY strategies strategies
COPY policies policies
COPY orchestrator orchestrator
COPY workers workers
RUN pip install --constraint constraints.txt ".[monitor]" && useradd --system --create-home posology \
    && mkdir /index /memory /cache && chown posology /index /memory /cache
USER posology
CMD ["posology", "--help"]
