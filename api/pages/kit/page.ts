import type { Assets } from './assets.ts';
import { type Html, html } from './html.ts';
import type { PageContent } from './router.ts';

interface Parts extends Omit<PageContent, 'status'> {
  bodyClass?: string;
  header: Html | undefined;
  mainClass?: string;
  /** The result of the last action, shown once. */
  flash?: string | null | undefined;
  /** Charts need the credit that their licence asks for. */
  hasCharts: boolean;
  /** After the text. */
  below?: Html | undefined;
}

/** The frame that the pages of operators and of the console have in common, as HTML text. */
export function htmlPage(assets: Assets, parts: Parts): string {
  const { title, scripts = [], bodyClass, header, mainClass, flash, above, body, hasCharts, below } = parts;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · oddswire</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${assets.url('pages.css')}">
${scripts.map((name) => html`<script type="module" src="${assets.url(name)}"></script>`)}
</head>
<body${classOf(bodyClass)}>
<a class="skip" href="#main">Skip to content</a>
${header}
<main id="main" tabindex="-1"${classOf(mainClass)}>
${flash && html`<p class="flash" role="status">${flash}</p>`}
${above}
<h1>${title}</h1>
${body}
</main>
${
  hasCharts &&
  html`<footer class="credits">Charts by <a href="https://www.tradingview.com" rel="noreferrer">TradingView Lightweight Charts</a></footer>`
}
${below}
</body>
</html>
`.toString();
}

function classOf(name: string | undefined): Html | undefined {
  return name === undefined ? undefined : html` class="${name}"`;
}
