import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configTable } from '../../../src/config/config.ts';
import { VARIABLES } from '../../../src/config/variables.ts';
import { ARCHIVE_KINDS } from '../../../src/domain/archive/kinds.ts';
import { JOB_NAMES } from '../../../src/queues/jobs.ts';
import { STAGES } from '../../../src/store/marks/detail.ts';
import { pageText, ROOT } from '../../support/markdown.ts';

/** The cells of each table row of a page, without the rows of dashes. */
function rowsOf(page: string): string[][] {
  return pageText(page)
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^[|\s:-]+$/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
}

const plain = (cell: string) => cell.replaceAll('`', '');
const spans = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);

describe('docs/configuration.md', () => {
  it('lists every variable once, with its default', () => {
    const documented = rowsOf('docs/configuration.md')
      .filter(([name = '']) => /^`[A-Z\d_]+`$/.test(name))
      .map(([name = '', value = '']) => [plain(name), plain(value)]);
    expect(documented.sort()).toEqual(
      configTable()
        .map(({ name, default: value }) => [name, value])
        .sort(),
    );
  });
});

describe('docs/operations.md', () => {
  it('lists the processes that need each secret', () => {
    // Rows of other tables name no process.
    const expected = Object.entries(VARIABLES).flatMap(([name, { readers }]) =>
      readers === undefined ? [] : [[name, readers.toSorted()]],
    );
    const secrets = expected.map(([name]) => name);
    const documented = rowsOf('docs/operations.md').flatMap(([names = '', processes = '']) =>
      spans(names)
        .filter((name) => secrets.includes(name) && spans(processes).length > 0)
        .map((name) => [name, spans(processes).sort()]),
    );
    expect(documented.sort()).toEqual(expected.sort());
  });
});

describe('docs/architecture.md', () => {
  /** The object that a constant of scripts/check-imports.mjs holds. */
  function rule<T>(name: string): T {
    const script = readFileSync(join(ROOT, 'scripts/check-imports.mjs'), 'utf8');
    const literal = new RegExp(`const ${name} = (\\{[\\s\\S]*?\\n\\});`).exec(script)?.[1];
    if (literal === undefined) throw new Error(`scripts/check-imports.mjs has no ${name}`);
    return new Function(`return ${literal}`)() as T;
  }

  const rows = new Map(
    rowsOf('docs/architecture.md').map(([name = '', , imports = '']) => [plain(name), spans(imports).sort()]),
  );

  it('states the imports of each folder as the import check does', () => {
    const rules = rule<Record<string, string[]>>('MAY_IMPORT');
    for (const [folder, imports] of Object.entries(rules)) {
      expect([folder, rows.get(folder)]).toEqual([folder, imports.map((name) => name.replace('src/', '')).sort()]);
    }
  });

  it('states the imports of each room as the import check does', () => {
    const rules = rule<Record<string, Record<string, string[]>>>('ROOMS');
    for (const [folder, rooms] of Object.entries(rules)) {
      for (const [room, imports] of Object.entries(rooms)) {
        const name = `${folder}/${room}`;
        expect([name, rows.get(name)]).toEqual([name, imports.toSorted()]);
      }
    }
  });

  it('explains the marks of every stage', () => {
    expect(STAGES.filter((stage) => !rows.has(stage))).toEqual([]);
  });
});

describe('docs/archive.md', () => {
  it('lists every column of every kind', () => {
    const documented = rowsOf('docs/archive.md')
      .filter((row) => row.length === 3 && /^`[a-z_]+`$/.test(row[0] ?? ''))
      .map(([name = '', , meaning]) => [plain(name), meaning]);
    const columns = Object.values(ARCHIVE_KINDS).flatMap((kind) =>
      kind.columns.map((column) => [column.name, column.meaning]),
    );
    expect(documented).toEqual(columns);
  });
});

describe('docs', () => {
  it('mention every job', () => {
    const text = ['docs/architecture.md', 'docs/glossary.md', 'docs/guides/follow-a-trade.md', 'docs/tables.md']
      .map(pageText)
      .join('\n');
    const polls = JOB_NAMES.filter((name) => name.startsWith('poll-'));
    expect(text).toContain('`poll-*`');
    expect(JOB_NAMES.filter((name) => !polls.includes(name) && !text.includes(name))).toEqual([]);
  });

  it('sort the glossary by its terms', () => {
    const [terms = []] = [
      rowsOf('docs/glossary.md')
        .filter((row) => row.length === 3)
        .map(([term = '']) => plain(term).toLowerCase())
        .filter((term) => term !== 'term'),
    ];
    expect(terms.length).toBeGreaterThan(50);
    expect(terms).toEqual(terms.toSorted());
  });
});
