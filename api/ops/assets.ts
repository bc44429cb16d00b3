import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { ParameterizedContext } from 'koa';
import { OddswireError } from '../../src/domain/values/errors.ts';
import type { ApiState } from '../deps.ts';
import { ApiError } from '../errors.ts';

const BASE_PATH = '/ops/assets';
const TYPES = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' } as const;
const YEAR_SECONDS = 31_536_000;

interface Asset {
  type: string;
  bytes: Buffer;
  /** Created at the first request. */
  gzipped?: Buffer;
}

/** The style sheet and scripts of the operator pages. */
export interface OpsAssets {
  /** The URL of a file, which changes with its content. @throws OddswireError for an unknown name. */
  url(name: string): string;
  /** Answers a request below /ops/assets. @throws ApiError `not_found`. */
  send(ctx: ParameterizedContext<ApiState>): void;
}

/**
 * Reads the files of `api/ops/assets` and the chart library once. The build copies only TypeScript, so
 * they are located from the package root, which contains both the sources and `dist`.
 */
export function loadOpsAssets(): OpsAssets {
  const folder = join(packageRoot(), 'api', 'ops', 'assets');
  const assets = new Map<string, Asset>();
  for (const name of readdirSync(folder).sort()) {
    const extension = name.slice(name.lastIndexOf('.') + 1);
    if (extension === 'css' || extension === 'js') {
      assets.set(name, { type: TYPES[extension], bytes: readFileSync(join(folder, name)) });
    }
  }
  assets.set('lightweight-charts.js', { type: TYPES.js, bytes: readFileSync(chartLibrary()) });
  // One version for all files, because modules import each other by relative names.
  const digest = createHash('sha256');
  for (const [name, { bytes }] of assets) digest.update(`${name} ${bytes.length} `).update(bytes);
  const version = digest.digest('hex').slice(0, 16);

  return {
    url(name) {
      if (!assets.has(name)) throw new OddswireError('no_such_asset', `the operator pages have no file ${name}`);
      return `${BASE_PATH}/${version}/${name}`;
    },
    send(ctx) {
      const [requested, name = '', ...rest] = ctx.path.slice(BASE_PATH.length + 1).split('/');
      const asset = rest.length === 0 ? assets.get(name) : undefined;
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

/** Whether a path is below the assets. */
export function isAssetPath(path: string): boolean {
  return path.startsWith(`${BASE_PATH}/`);
}

function packageRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder)
      throw new OddswireError('no_package_root', 'no folder above the program contains package.json');
    folder = parent;
  }
  return folder;
}

function chartLibrary(): string {
  const manifest = createRequire(import.meta.url).resolve('lightweight-charts/package.json');
  return join(dirname(manifest), 'dist', 'lightweight-charts.standalone.production.mjs');
}
