import { html } from 'ghtml';

const SECTIONS = [
  ['/docs', 'API reference'],
  ['/docs/streams', 'Streams'],
  ['/docs/read', 'Guides'],
] as const;
type DocsSection = (typeof SECTIONS)[number][0];

/** The navigation of all pages below /docs, as markup. */
function docsHeader(current: DocsSection): string {
  const links = SECTIONS.map(
    ([path, label]) => html`<a href="${path}"!${path === current ? ' aria-current="page"' : ''}>${label}</a>`,
  );
  return `<header class="bar"><a class="brand" href="/docs/read">oddswire</a><nav aria-label="Documentation">${links.join('')}</nav>
<nav class="files" aria-label="Documents"><a href="/openapi.json">openapi.json</a><a href="/asyncapi.json">asyncapi.json</a></nav></header>`;
}

interface DocsPage {
  title: string;
  section: DocsSection;
  /** Markup. */
  body: string;
  /** Markup beside the body. */
  aside?: string;
  /** The address of a script. */
  script?: string;
}

/** A page below /docs. */
export function docsPage({ title, section, body, aside, script }: DocsPage): string {
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · oddswire</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/page.css">
!${script !== undefined && html`<script src="${script}" defer></script>`}
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
!${docsHeader(section)}
!${aside !== undefined && html`<div class="beside"><aside aria-label="Contents and search">!${aside}</aside>`}
<main id="main" tabindex="-1">!${body}</main>
!${aside !== undefined && '</div>'}
</body>
</html>
`;
}
