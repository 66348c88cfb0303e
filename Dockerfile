# The service in a small image:  docker build -t superarm .
#   docker run -p 8800:8800 -v superarm:/data -e SUPERARM_TOKEN=… superarm --labels /data/labels.txt --set-size 3
FROM python:3.12-slim AS build
WORKDIR /build
COPY . .
RUN python -m venv /srv/superarm \
 && /srv/superarm/bin/pip install --no-cache-dir -c constraints.txt ".[serve,postgres]"

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /data --create-home superarm
COPY --from=build /srv/superarm /srv/superarm
ENV PATH=/srv/superarm/bin:$PATH PYTHONUNBUFFERED=1
USER superarm
WORKDIR /data
VOLUME /data
EXPOSE 8800
# a snapshot is kept when it ends
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8800/health', timeout=2)"]
ENTRYPOINT ["superarm", "serve", "--host", "0.0.0.0", "--journal", "/data/events.db"]
