import { type Agent, request } from 'node:http';
import {
  type ApiContract,
  decoded,
  type JsonSchema,
  type Operation,
  type ParameterObject,
  pointer,
} from '../support/api-contract.ts';
import type { Plan } from './requests.ts';
import { resolved } from './values.ts';
import type { World } from './world.ts';

/** A request in the form that is sent. */
export interface Outgoing {
  method: string;
  target: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
}

export interface Received {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

/** Beyond this size the server may close the connection before the end of the request, and its answer is lost. */
const MAX_BODY_BYTES = 64 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;

/** Replaces the placeholders of a plan with ids. */
export function outgoing(plan: Plan & { contentType: string }, world: World): Outgoing {
  const known = (text: string) => resolved(text, world.known);
  const path = plan.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encoded(known(plan.segments[name] ?? '')));
  const query = [...plan.query.map(([name, value]) => `${encoded(name)}=${encoded(known(value))}`), plan.rawQuery];
  const text = query.filter((part) => part !== '').join('&');
  const headers: Record<string, string> = {};
  for (const [name, value] of plan.headers) headers[name] = value;
  for (const { header, value } of plan.auth) {
    const key = typeof value === 'string' ? value : world.keys[value.key];
    headers[header] = header === 'Authorization' && typeof value !== 'string' ? `Bearer ${key}` : key;
  }
  const body = bodyOf(plan, known);
  if (body) {
    if (plan.contentType !== '') headers['Content-Type'] = plan.contentType;
    headers['Content-Length'] = String(body.length);
  }
  return { method: plan.method, target: text === '' ? path : `${path}?${text}`, headers, body };
}

function bodyOf({ body }: Plan, known: (text: string) => string): Buffer | undefined {
  if (body.kind === 'none') return undefined;
  if (body.kind === 'raw') return Buffer.from(body.base64, 'base64');
  const text = JSON.stringify(body.value, (_key, value: unknown) => (typeof value === 'string' ? known(value) : value));
  return Buffer.from(text ?? 'null');
}

/** Percent-encodes text, including lone surrogates. */
function encoded(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80';
}

/** Sends a request. Returns null when the server closed the connection during a large request. */
export async function send(
  url: string,
  agent: Agent,
  { method, target, headers, body }: Outgoing,
): Promise<Received | null> {
  const { hostname, port } = new URL(url);
  try {
    return await new Promise<Received>((resolve, reject) => {
      const pending = request({ hostname, port, method, path: target, headers, agent }, (response) => {
        if (response.headers['content-type']?.startsWith('text/event-stream') && method !== 'HEAD') {
          // A stream does not end by itself.
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.alloc(0) });
          response.destroy();
          return;
        }
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: decoded(Buffer.concat(chunks), response.headers['content-encoding']),
          }),
        );
      });
      pending.on('error', reject);
      pending.end(body);
    });
  } catch (error) {
    const headerBytes = target.length + Object.entries(headers).flat().join('').length;
    if ((body?.length ?? 0) > MAX_BODY_BYTES || headerBytes > MAX_HEADER_BYTES) return null;
    throw error;
  }
}

/** The faults of a request according to the document; empty for a valid request. */
export function wrongs(contract: ApiContract, plan: Plan, out: Outgoing): string[] {
  const operation = contract.document.paths[plan.path]?.[plan.method === 'HEAD' ? 'get' : plan.method.toLowerCase()];
  // An empty parameter leads to another route.
  if (!operation || contract.routeOf(out.target) !== plan.path) return [];
  const at = ['paths', plan.path, plan.method === 'HEAD' ? 'get' : plan.method.toLowerCase()];
  const query = new URLSearchParams(out.target.split('?')[1] ?? '');
  const found = (operation.parameters ?? []).flatMap((given, index) => {
    const shared = '$ref' in given;
    const { name, in: where, required, schema } = (shared ? contract.resolve(given.$ref) : given) as ParameterObject;
    if (where !== 'query') return [];
    if (!query.has(name)) return required ? [`${name} is missing`] : [];
    const text = query.getAll(name).join(',');
    return contract.problemsOfValue(coerced(text, schema), pointer([...at, 'parameters', String(index), 'schema']));
  });
  if (!isKeyRight(plan, operation)) found.push('the key is invalid for this route');
  const { requestBody } = operation;
  if (requestBody && (out.body?.length || requestBody.required)) {
    const place = pointer([...at, 'requestBody', 'content', 'application/json', 'schema']);
    found.push(...contract.problemsOfValue(parsed(out.body), place));
  }
  return found;
}

function isKeyRight({ auth }: Plan, { security = [] }: Operation): boolean {
  const [scheme] = security.flatMap((one) => Object.keys(one));
  if (scheme === undefined) return true;
  const [given] = auth;
  if (!given || typeof given.value === 'string' || given.value.key === 'expired') return false;
  return given.header === (scheme === 'bearer' ? 'Authorization' : 'X-API-Key');
}

function coerced(text: string, schema: JsonSchema): unknown {
  if ((schema.anyOf as JsonSchema[] | undefined)?.some(({ type }) => type === 'array')) return text.split(',');
  if (schema.type === 'boolean' && /^(true|false)$/.test(text)) return text === 'true';
  return schema.type === 'integer' && /^-?\d+$/.test(text) ? Number(text) : text;
}

/** The JSON value of a body; undefined when it is not JSON. */
export function parsed(body: Buffer | undefined): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body ?? Buffer.of()));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}
