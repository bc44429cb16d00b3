import type { AnswerDeps } from '../http/answer-deps.ts';
import { fileRoute, type Route } from '../http/route.ts';
import { StaticFile, sendFile } from '../http/static-file.ts';
import { asyncApiDocument } from '../openapi/asyncapi.ts';
import { openApiDocument } from '../openapi/document.ts';
import type { ReadDeps } from '../reads/read-deps.ts';
import { marketVenues } from './market-scope.ts';

const MAX_AGE_SECONDS = 300;

type DocumentDeps = Pick<ReadDeps, 'venues'> & Pick<AnswerDeps, 'decimalFormat'>;

/** The served document of these routes. It depends on the configuration only, so all processes serve the same text. */
export function openApiText(deps: DocumentDeps, routes: readonly Route[]): string {
  const contracts = routes.map(({ contract }) => contract);
  return JSON.stringify(openApiDocument(contracts, { decimalFormat: deps.decimalFormat, venues: marketVenues(deps) }));
}

/** GET /openapi.json: the document of these routes and of itself, generated at the first request. `routes` may grow until then. */
export function openApiRoute(deps: DocumentDeps, routes: readonly Route[]): { route: Route; file: StaticFile } {
  const file = new StaticFile('application/json; charset=utf-8', MAX_AGE_SECONDS, () =>
    openApiText(deps, [...routes, route]),
  );
  const route = fileRoute(
    {
      path: '/openapi.json',
      operationId: 'getOpenApi',
      summary: 'This document',
      description: 'Generated from the schemas that check requests and answers.',
      tag: 'contract',
      answer: { description: 'OpenAPI 3.1.', mediaTypes: ['application/json'] },
    },
    (ctx) => sendFile(ctx, file),
  );
  return { route, file };
}

/** The served document. It depends on the configuration only, so all processes serve the same text. */
export function asyncApiText(deps: DocumentDeps): string {
  return JSON.stringify(asyncApiDocument({ decimalFormat: deps.decimalFormat, venues: marketVenues(deps) }));
}

/** GET /asyncapi.json: the document of the streams, generated at the first request. */
export function asyncApiRoute(deps: DocumentDeps): Route {
  const file = new StaticFile('application/json; charset=utf-8', MAX_AGE_SECONDS, () => asyncApiText(deps));
  return fileRoute(
    {
      path: '/asyncapi.json',
      operationId: 'getAsyncApi',
      summary: 'The document of the streams',
      description: 'Generated from the schemas of the messages.',
      tag: 'contract',
      answer: { description: 'AsyncAPI 3.', mediaTypes: ['application/json'] },
    },
    (ctx) => sendFile(ctx, file),
  );
}
