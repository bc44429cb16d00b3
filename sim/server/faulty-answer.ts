import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { type FaultRequest, renameField, setField } from '../faults.ts';
import type { Reply } from './reply.ts';

const PAGE =
  '<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Checking your browser</body></html>';
const DRIPS = 20;

/** Sends a correct answer with the faults applied. Resolves when all of it is sent, or the client disconnected. */
export async function answerFaulty(
  response: ServerResponse,
  reply: Reply,
  hits: readonly FaultRequest[],
  closing: AbortSignal,
): Promise<void> {
  if (hits.some((hit) => hit.kind === 'html')) {
    send(response, { status: 200, body: PAGE }, 'text/html; charset=utf-8');
    return;
  }
  const bent = { ...reply, body: bend(reply.body, hits) };
  const cut = hits.find((hit) => hit.kind === 'truncate');
  const drip = hits.find((hit) => hit.kind === 'drip');
  if (cut !== undefined) truncate(response, bent, cut);
  else if (drip !== undefined) await dripOut(response, bent, drip.latencyMs ?? 0, closing);
  else send(response, bent);
}

/** Sends an answer in one piece. */
export function send(response: ServerResponse, reply: Reply, contentType = 'application/json'): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(reply.status, {
    ...reply.headers,
    'content-type': contentType,
    'content-length': Buffer.byteLength(reply.body),
  });
  response.end(reply.body);
}

function bend(text: string, hits: readonly FaultRequest[]): string {
  return hits.reduce((body, { kind, field, set }) => {
    if (kind === 'rename_field' && field !== undefined) return renameField(body, field.from, field.to);
    return kind === 'set_field' && set !== undefined ? setField(body, set.field, set.value, set.every) : body;
  }, text);
}

function truncate(response: ServerResponse, reply: Reply, { contentLength }: FaultRequest): void {
  const full = Buffer.from(reply.body);
  const half = full.subarray(0, Math.floor(full.length / 2));
  response.writeHead(reply.status, {
    ...reply.headers,
    'content-type': 'application/json',
    'content-length': contentLength === 'full' ? full.length : half.length,
  });
  if (contentLength !== 'full') response.end(half);
  // The rest is never sent: the connection ends in the middle of the body.
  else response.write(half, () => response.destroy());
}

async function dripOut(response: ServerResponse, reply: Reply, totalMs: number, closing: AbortSignal): Promise<void> {
  const full = Buffer.from(reply.body);
  const pieceBytes = Math.max(1, Math.ceil(full.length / DRIPS));
  response.writeHead(reply.status, {
    ...reply.headers,
    'content-type': 'application/json',
    'content-length': full.length,
  });
  for (let at = 0; at < full.length && !response.destroyed; at += pieceBytes) {
    await wait(totalMs / DRIPS, undefined, { signal: closing });
    if (!response.write(full.subarray(at, at + pieceBytes)))
      await Promise.race([once(response, 'drain'), once(response, 'close')]);
  }
  response.end();
}
