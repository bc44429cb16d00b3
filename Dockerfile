# One image for every process; docker-compose.yml selects the process of a container.

# Runtime packages: no development packages, no embedded Postgres (an optional package of a hundred megabytes).
FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts && npm cache clean --force

# Build packages: the compiler's own binary is an optional package.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json rolldown.config.mjs Procfile ./
COPY api ./api
COPY bin ./bin
COPY cli ./cli
COPY scripts/bundle.mjs ./scripts/bundle.mjs
COPY sim ./sim
COPY small ./small
COPY src ./src
COPY workers ./workers
RUN npm run --silent build

FROM node:24-slim
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    METRICS_HOST=0.0.0.0 \
    METRICS_PORT=9464
WORKDIR /app
COPY --from=packages /app/package.json ./package.json
COPY --from=packages /app/node_modules ./node_modules
COPY --from=build /app/api/pages/kit/assets ./api/pages/kit/assets
COPY --from=build /app/api/pages/ops/assets ./api/pages/ops/assets
COPY --from=build /app/api/pages/console/assets ./api/pages/console/assets
COPY --from=build /app/api/docs/assets ./api/docs/assets
COPY --from=build /app/dist ./dist
COPY docs ./docs
COPY --from=build /app/Procfile ./Procfile
# `docker run IMAGE oddswire keys list`, with the variables of a process.
RUN ln -s /app/dist/bin/oddswire.js /usr/local/bin/oddswire
USER node
EXPOSE 8080 9464
# The process of the container answers on its own METRICS_PORT.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.METRICS_PORT}/health/live`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/api/main.js"]
