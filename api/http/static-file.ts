import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { ApiContext } from '../deps.ts';
import { matchesEtag } from './respond.ts';

interface Content {
  bytes: Buffer;
  gzipped?: Buffer;
  /** Weak: the same for every encoding. */
  etag: string;
}

/** Something that is the same for everybody as long as the process runs. It is had when first asked for, then kept in memory. */
export class StaticFile {
  /** With its charset. */
  readonly type: string;
  readonly maxAgeSeconds: number;
  readonly #make: () => Buffer | string;
  #content: Content | undefined;

  constructor(type: string, maxAgeSeconds: number, make: () => Buffer | string) {
    this.type = type;
    this.maxAgeSeconds = maxAgeSeconds;
    this.#make = make;
  }

  get content(): Content {
    if (!this.#content) {
      const bytes = Buffer.from(this.#make());
      this.#content = { bytes, etag: `W/"${createHash('sha1').update(bytes).digest('base64url')}"` };
    }
    return this.#content;
  }
}

/** A file on disk. Throws when there is none now; it is read later. */
export function fileOnDisk(path: string, type: string, maxAgeSeconds: number): StaticFile {
  statSync(path);
  return new StaticFile(type, maxAgeSeconds, () => readFileSync(path));
}

/** Answers with it: whole, gzipped, or 304. */
export function sendFile(ctx: ApiContext, { content, type, maxAgeSeconds }: StaticFile): void {
  ctx.set('ETag', content.etag);
  ctx.set('Cache-Control', `public, max-age=${maxAgeSeconds}`);
  ctx.vary('Accept-Encoding');
  if (matchesEtag(ctx.get('If-None-Match'), content.etag)) {
    ctx.status = 304;
    return;
  }
  ctx.type = type;
  if (ctx.get('Accept-Encoding') !== '' && ctx.acceptsEncodings('gzip', 'identity') === 'gzip') {
    content.gzipped ??= gzipSync(content.bytes);
    ctx.set('Content-Encoding', 'gzip');
    ctx.body = content.gzipped;
  } else {
    ctx.body = content.bytes;
  }
}
