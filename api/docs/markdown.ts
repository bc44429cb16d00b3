import { Marked, Renderer } from 'marked';

/** The anchor of a heading, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&#?\w+;/g, '')
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-');
}

/** The heading and the markup of a page. */
interface RenderedPage {
  title: string;
  body: string;
}

/** Renders a page of the project's own documentation. `linkOf` gets each target, and returns the address of the page that shows it. */
export function renderMarkdown(text: string, linkOf: (target: string) => string | null): RenderedPage {
  const used = new Map<string, number>();
  let title = '';
  let section = '';
  /** The tables of each section: landmarks need distinct names. */
  const tables = new Map<string, number>();
  const base = new Renderer();
  const renderer = {
    heading(
      this: Renderer,
      { tokens, depth }: { tokens: Parameters<Renderer['parser']['parseInline']>[0]; depth: number },
    ) {
      const markup = this.parser.parseInline(tokens);
      section = markup.replaceAll(/<[^>]*>/g, '');
      if (depth === 1 && title === '') title = section;
      const anchor = anchorOf(markup);
      const count = used.get(anchor) ?? 0;
      used.set(anchor, count + 1);
      return `<h${depth} id="${count === 0 ? anchor : `${anchor}-${count}`}">${markup}</h${depth}>\n`;
    },
    // A wide block scrolls, so the keyboard must reach it.
    code(token: Parameters<Renderer['code']>[0]) {
      return base.code(token).replace('<pre>', '<pre tabindex="0">');
    },
    table(this: Renderer, token: Parameters<Renderer['table']>[0]) {
      base.parser = this.parser;
      const count = (tables.get(section) ?? 0) + 1;
      tables.set(section, count);
      const label = `${section}, table ${count}`.replaceAll('"', '&quot;');
      return `<div class="scroll" tabindex="0" role="region" aria-label="${label}">${base.table(token)}</div>\n`;
    },
    link(this: Renderer, token: Parameters<Renderer['link']>[0]) {
      const target = linkOf(token.href);
      base.parser = this.parser;
      return target === null ? this.parser.parseInline(token.tokens) : base.link({ ...token, href: target });
    },
    image(this: Renderer, token: Parameters<Renderer['image']>[0]) {
      base.parser = this.parser;
      return base.image({ ...token, href: linkOf(token.href) ?? token.href });
    },
  };
  const body = new Marked({ renderer, async: false }).parse(text, { async: false });
  return { title, body };
}
