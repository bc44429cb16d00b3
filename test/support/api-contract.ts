import type { IncomingMessage, OutgoingHttpHeader, RequestListener, ServerResponse } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

/** The parts of an OpenAPI document that its reader needs. */
export interface OpenApi {
  openapi: string;
  info: { version: string; [key: string]: unknown };
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, JsonSchema>;
    responses: Record<string, ResponseObject>;
    headers: Record<string, HeaderObject>;
    parameters: Record<string, ParameterObject>;
    [key: string]: unknown;
  };
  [key: string]: unknown;
}
export interface Operation {
  operationId: string;
  tags: string[];
  security?: Record<string, string[]>[];
  parameters?: (ParameterObject | Ref)[];
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, ResponseObject | Ref>;
}
export interface ParameterObject {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  schema: JsonSchema;
}
export interface ResponseObject {
  description: string;
  headers?: Record<string, HeaderObject | Ref>;
  content?: Content;
}
interface HeaderObject {
  required?: boolean;
  schema: JsonSchema;
}
type Content = Record<string, { schema: JsonSchema; example?: unknown; examples?: Record<string, { value: unknown }> }>;
interface Ref {
  $ref: string;
}
export type JsonSchema = { [key: string]: unknown };

/** The parts of a request and its answer that the contract covers. */
export interface Exchange {
  method: string;
  /** Path and query. */
  target: string;
  status: number;
  headers: Headers;
  /** Decoded. */
  body: Buffer;
}

/** The operator pages, the pages of docs, the console and other protocols. Without the console, its paths have no route. */
const PAGES =
  /^\/(?:ops(?:\/.*)?|docs\/(?:read|streams|images)(?:\/.*)?|mcp|llms\.txt|sign-(?:in|out|out-everywhere)|account|(?:markets|watchlist|events|resolutions|alerts|wallets|webhooks|deliveries|live|archive|usage|start|console)(?:\/.*)?)?$/;
const METHODS = ['get', 'put', 'post', 'delete', 'patch'];
/** The statuses allowed without a matching route, in the envelope of failures. */
const UNROUTED_STATUSES = [400, 404, 405, 414, 426, 500, 503];
const ID = 'api.json';

/** Reads a document: the contract of a route, and whether an answer follows it. */
export class ApiContract {
  readonly document: OpenApi;
  readonly #ajv: Ajv2020;
  readonly #routes: { pattern: RegExp; path: string; params: number }[];
  readonly #validators = new Map<string, ValidateFunction>();
  readonly #resolved = new Map<string, unknown>();

  constructor(text: string) {
    this.document = JSON.parse(text) as OpenApi;
    this.#ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
    formats.default(this.#ajv);
    this.#ajv.addFormat('decimal', true);
    this.#ajv.addSchema(closed({ ...(JSON.parse(text) as OpenApi), $id: ID }));
    this.#routes = Object.keys(this.document.paths)
      .map((path) => ({ path, params: path.split('{').length - 1, pattern: patternOf(path) }))
      .sort((a, b) => a.params - b.params);
  }

  /** The path template of a request target: of several, the most exact one. */
  routeOf(target: string): string | undefined {
    const [path = ''] = target.split('?');
    return this.#routes.find(({ pattern }) => pattern.test(path))?.path;
  }

  /** The differences between an answer and the document. */
  problemsOf(exchange: Exchange): string[] {
    const { method, target, status } = exchange;
    const [path = ''] = target.split('?');
    // The operator pages are outside the contract; preflights are for browsers.
    if (PAGES.test(path) || (method === 'OPTIONS' && status === 204)) return [];
    const template = this.routeOf(target);
    const operation = template && this.document.paths[template]?.[method === 'HEAD' ? 'get' : method.toLowerCase()];
    if (!operation) return this.#problemsOfUnrouted(exchange, template);
    const documented = operation.responses[String(status)];
    if (!documented) return [`status ${status} is not documented for ${method} ${template}`];
    const at = ['paths', template, method === 'HEAD' ? 'get' : method.toLowerCase(), 'responses', String(status)];
    return this.#problemsOfResponse(exchange, '$ref' in documented ? documented.$ref : pointer(at));
  }

  /** The differences between a value and the schema at a JSON pointer of the document that begins with `#/`. */
  problemsOfValue(value: unknown, place: string): string[] {
    let validate = this.#validators.get(place);
    if (!validate) {
      validate = this.#ajv.compile({ $ref: `${ID}${place}` });
      this.#validators.set(place, validate);
    }
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || 'body'} ${message} ${JSON.stringify(params)}`,
    );
  }

  /** The target of a JSON pointer that begins with `#/`. */
  resolve(place: string): unknown {
    const known = this.#resolved.get(place);
    if (known !== undefined) return known;
    let found: unknown = this.document;
    for (const part of place.slice(2).split('/')) {
      const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
      found = typeof found === 'object' && found !== null ? (found as Record<string, unknown>)[key] : undefined;
    }
    this.#resolved.set(place, found);
    return found;
  }

  #problemsOfUnrouted(exchange: Exchange, template: string | undefined): string[] {
    const { method, target, status } = exchange;
    if (!UNROUTED_STATUSES.includes(status)) return [`${method} ${target} is not documented, but answered ${status}`];
    if (status === 405) {
      if (template === undefined && !target.startsWith('/')) return ['405 without a route'];
      return this.#problemsOfResponse(exchange, '#/components/responses/method_not_allowed');
    }
    const body = parsed(exchange.body);
    if (method === 'HEAD') return [];
    const code = (body as { error?: { code?: unknown } } | undefined)?.error?.code;
    return [
      ...this.problemsOfValue(code, '#/components/schemas/ErrorCode'),
      ...this.problemsOfValue((body as { meta?: unknown } | undefined)?.meta, '#/components/schemas/ErrorMeta'),
    ];
  }

  #problemsOfResponse({ method, status, headers, body }: Exchange, place: string): string[] {
    const response = this.resolve(place) as ResponseObject;
    const problems: string[] = [];
    for (const [name, given] of Object.entries(response.headers ?? {})) {
      const header = '$ref' in given ? (this.resolve(given.$ref) as HeaderObject) : given;
      const text = headers.get(name);
      if (text === null) {
        if (header.required) problems.push(`header ${name} is missing`);
        continue;
      }
      const value = header.schema.type === 'integer' && /^\d+$/.test(text) ? Number(text) : text;
      const headerPlace = '$ref' in given ? given.$ref : `${place}/headers/${escaped(name)}`;
      problems.push(
        ...this.problemsOfValue(value, `${headerPlace}/schema`).map((problem) => `header ${name}: ${problem}`),
      );
    }
    if (method === 'HEAD' || status === 304) {
      return body.length === 0 ? problems : [...problems, 'there is a body'];
    }
    const content = response.content ?? {};
    const [type = ''] = (headers.get('content-type') ?? '').split(';');
    if (!content[type]) return [...problems, `content type ${JSON.stringify(type)} is not documented`];
    if (type !== 'application/json') return problems;
    const value = parsed(body);
    if (value === undefined) return [...problems, 'the body is not JSON'];
    const schema = `${place}/content/${escaped(type)}/schema`;
    return [...problems, ...this.problemsOfValue(value, schema)];
  }
}

/** The operations of a document. */
export function operationsOf({ paths }: OpenApi): { path: string; method: string; operation: Operation }[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) =>
      METHODS.includes(method) ? [{ path, method, operation }] : [],
    ),
  );
}

/** A JSON pointer to a place of the document. */
export function pointer(parts: readonly string[]): string {
  return `#/${parts.map(escaped).join('/')}`;
}

function escaped(part: string): string {
  return encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
}

/** Closes every schema: the published document allows more fields, but today's answers have none. */
export function closed<Value>(value: Value): Value {
  if (Array.isArray(value)) for (const item of value) closed(item);
  else if (typeof value === 'object' && value !== null) {
    const schema = value as JsonSchema;
    if (schema.type === 'object' && schema.properties && schema.additionalProperties === undefined) {
      schema.additionalProperties = false;
    }
    for (const item of Object.values(value)) closed(item);
  }
  return value;
}

function patternOf(path: string): RegExp {
  const text = path
    .split(/\{\w+\}/)
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('[^/]+');
  return new RegExp(`^${text}/?$`);
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Reports every answer of a listener. */
export function observed(listener: RequestListener, onExchange: (exchange: Exchange) => void): RequestListener {
  return (req, res) => {
    const chunks: Buffer[] = [];
    let given: Headers | undefined;
    const { write, end, writeHead } = res;
    const keep = (chunk: unknown, encoding: unknown) => {
      if (typeof chunk === 'string')
        chunks.push(Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'));
      else if (chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk));
    };
    res.writeHead = ((...args: unknown[]) => {
      given = headersGiven(args.at(-1));
      return Reflect.apply(writeHead, res, args) as ServerResponse;
    }) as ServerResponse['writeHead'];
    res.write = ((...args: unknown[]) => {
      keep(args[0], args[1]);
      return Reflect.apply(write, res, args) as boolean;
    }) as ServerResponse['write'];
    res.end = ((...args: unknown[]) => {
      keep(args[0], args[1]);
      // The client disconnected and gets no answer.
      if (res.socket && !res.socket.destroyed) onExchange(exchangeOf(req, res, given, Buffer.concat(chunks)));
      return Reflect.apply(end, res, args) as ServerResponse;
    }) as ServerResponse['end'];
    listener(req, res);
  };
}

function exchangeOf(req: IncomingMessage, res: ServerResponse, given: Headers | undefined, bytes: Buffer): Exchange {
  const headers = given ?? new Headers();
  for (const [name, value] of Object.entries(res.getHeaders())) headers.set(name, String(value));
  const body = decoded(bytes, headers.get('content-encoding'));
  return { method: req.method ?? '', target: req.url ?? '', status: res.statusCode, headers, body };
}

/** The bytes of a body before their compression. */
export function decoded(bytes: Buffer, encoding: string | null | undefined): Buffer {
  if (bytes.length === 0) return bytes;
  return encoding === 'br' ? brotliDecompressSync(bytes) : encoding === 'gzip' ? gunzipSync(bytes) : bytes;
}

/** The headers given to `writeHead`: names and values in turn, or a record. */
function headersGiven(value: unknown): Headers {
  const headers = new Headers();
  if (Array.isArray(value)) {
    const flat = value.flat() as OutgoingHttpHeader[];
    for (let i = 0; i + 1 < flat.length; i += 2) headers.append(String(flat[i]), String(flat[i + 1]));
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, item] of Object.entries(value)) if (item !== undefined) headers.set(name, String(item));
  }
  return headers;
}
