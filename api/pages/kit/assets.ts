import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { ParameterizedContext } from 'koa';
import { OddswireError } from '../../../src/domain/values/errors.ts';
import type { ApiState } from '../../context.ts';
import { ApiError } from '../../errors.ts';
import { packageRoot } from '../../http/static-file.ts';

const TYPES = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' } as const;
const YEAR_SECONDS = 31_536_000;
/** The style sheets of the former release, one per group. During a rolling upgrade its pages request them. */
const FORMER_STYLES = new Set(['ops.css', 'console.css']);

interface Asset {
  type: string;
  bytes: Buffer;
  /** Created at the first request. */
  gzipped?: Buffer;
}

/** The style sheets and scripts of a group of pages: the operator pages, or the console. */
export interface Assets {
  /** The URL of a file, which changes with its content. @throws OddswireError for an unknown name. */
  url(name: string): string;
  /** Whether a path is below the assets. */
  has(path: string): boolean;
  /** Answers a request below the assets. @throws ApiError `not_found`. */
  send(ctx: ParameterizedContext<ApiState>): void;
}

/** Reads the files of a group of pages, those of all pages, and the chart library once. */
export function loadAssets(basePath: string, group: 'ops' | 'console'): Assets {
  const assets = new Map<string, Asset>();
  for (const part of ['kit', group]) {
    const folder = join(packageRoot(), 'api', 'pages', part, 'assets');
    for (const name of readdirSync(folder).sort()) {
      const extension = name.slice(name.lastIndexOf('.') + 1);
      if (extension === 'css' || extension === 'js') {
        assets.set(name, { type: TYPES[extension], bytes: readFileSync(join(folder, name)) });
      }
    }
  }
  assets.set('lightweight-charts.js', { type: TYPES.js, bytes: readFileSync(chartLibrary()) });
  // One version for all files, because modules import each other by relative names.
  const digest = createHash('sha256');
  for (const [name, { bytes }] of assets) digest.update(`${name} ${bytes.length} `).update(bytes);
  const version = digest.digest('hex').slice(0, 16);

  return {
    url(name) {
      if (!assets.has(name)) throw new OddswireError('no_such_asset', `the pages have no file ${name}`);
      return `${basePath}/${version}/${name}`;
    },
    has: (path) => path.startsWith(`${basePath}/`),
    send(ctx) {
      const [requested, name = '', ...rest] = ctx.path.slice(basePath.length + 1).split('/');
      const current = FORMER_STYLES.has(name) ? 'pages.css' : name;
      const asset = rest.length === 0 ? assets.get(current) : undefined;
      if (asset === undefined) throw new ApiError('not_found', 'the file does not exist');
      // During a rolling upgrade a page of one version may request a file from the other: it gets the current file without caching.
      const isCurrent = requested === version;
      ctx.set('Cache-Control', isCurrent ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-store');
      ctx.set('Vary', 'Accept-Encoding');
      ctx.type = asset.type;
      if (ctx.acceptsEncodings('gzip', 'identity') === 'gzip') {
        asset.gzipped ??= gzipSync(asset.bytes);
        ctx.set('Content-Encoding', 'gzip');
        ctx.body = asset.gzipped;
      } else {
        ctx.body = asset.bytes;
      }
    },
  };
}

function chartLibrary(): string {
  const manifest = createRequire(import.meta.url).resolve('lightweight-charts/package.json');
  return join(dirname(manifest), 'dist', 'lightweight-charts.standalone.production.mjs');
}
