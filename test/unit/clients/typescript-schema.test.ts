import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { referenceDocument } from '../../../api/server/reference-document.ts';
import { VERSION } from '../../../src/config/version.ts';

const read = (path: string) => readFileSync(new URL(`../../../clients/typescript/${path}`, import.meta.url), 'utf8');

it('schema.ts matches the document of this server (npm run build, then npm run generate in clients/typescript)', () => {
  const sha256 = createHash('sha256').update(referenceDocument()).digest('hex');
  expect(read('src/schema.ts')).toContain(`// document sha256 ${sha256}\n`);
});

it('the client has the version of the server', () => {
  expect(JSON.parse(read('package.json'))).toMatchObject({ name: '@oddswire/client', version: VERSION });
});
