import { mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder for rows on their way, which exists while they are. */
export class WorkFolder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** The folder beside an unfinished file: the next run of a command that was killed removes what it left there. */
  static async beside(target: string): Promise<WorkFolder> {
    const folder = new WorkFolder(`${target}.part.work`);
    await folder.remove();
    return folder;
  }

  static async temporary(): Promise<WorkFolder> {
    return new WorkFolder(await mkdtemp(join(tmpdir(), 'oddswire-export-')));
  }

  /** The path of a file in the folder. */
  pathOf(name: string): string {
    mkdirSync(this.path, { recursive: true });
    return join(this.path, name);
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}
