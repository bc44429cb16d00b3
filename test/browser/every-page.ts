import Router from '@koa/router';

/** Paths of the pages of a router that no visited path matches. */
export function unvisited(registered: readonly { kind: string; path: string }[], visited: readonly string[]): string[] {
  const router = new Router();
  const pages = registered.filter(({ kind }) => kind === 'page');
  for (const { path } of pages) router.get(path, () => undefined);
  const seen = new Set(
    visited.map((path) => router.match(new URL(path, 'http://x').pathname, 'GET').pathAndMethod[0]?.path),
  );
  return pages.map(({ path }) => path).filter((path) => !seen.has(path));
}
