import { createWriteStream, mkdtempSync, rmSync, type WriteStream } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * What happened in a campaign, kept outside the processes: `ledger.jsonl` has a JSON line for each thing that was done or came
 * in, and each process has a file of what it wrote, over all its lives. It stays when the campaign fails.
 */
export class CampaignLog {
  readonly folder = mkdtempSync(join(tmpdir(), 'oddswire-faults-'));
  readonly #files = new Map<string, WriteStream>();

  /** A line of the ledger: what, when, and what is to be known of it. */
  note(what: string, fields: Record<string, unknown> = {}): void {
    this.write('ledger.jsonl', JSON.stringify({ at: new Date().toISOString(), what, ...fields }));
  }

  /** A line of another file. */
  write(name: string, text: string): void {
    let file = this.#files.get(name);
    if (file === undefined) {
      file = createWriteStream(join(this.folder, name));
      this.#files.set(name, file);
    }
    file.write(`${text}\n`);
  }

  /** Ends the files; they are removed unless somebody may want to read them. */
  async close({ isKept }: { isKept: boolean }): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => new Promise<void>((resolve) => file.end(resolve))));
    if (!isKept) rmSync(this.folder, { recursive: true, force: true });
  }
}
