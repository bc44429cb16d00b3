import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { OddswireError } from '../../src/domain/values/errors.ts';
import type { ApiContext } from '../context.ts';
import { matchesEtag } from './respond.ts';

interface Content {
  bytes: Buffer;
  gzipped?: Buffer;
  /** Weak: one ETag for all encodings. */
  etag: string;
}

/** Content that does not change while the process runs. The first request loads it, then it stays in memory. */
export class StaticFile {
  /** Media type with charset. */
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

/** The folder of package.json, which both the sources and the build have above them: the build copies only TypeScript. */
export function packageRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder)
      throw new OddswireError('no_package_root', 'no folder above the program contains package.json');
    folder = parent;
  }
  return folder;
}

/** A file on disk, read at the first request. Throws at once when the file does not exist. */
export function fileOnDisk(path: string, type: string, maxAgeSeconds: number): StaticFile {
  statSync(path);
  return new StaticFile(type, maxAgeSeconds, () => readFileSync(path));
}

/** Answers with the file: whole, gzipped, or 304. */
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
