import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The fast tests first: the first failing test kills a mutant. */
class UnitTestsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isSlow = ({ moduleId }: TestSpecification) => Number(moduleId.includes('/integration/'));
    return files.toSorted((a, b) => isSlow(a) - isSlow(b));
  }
}

/** The tests for mutants of src/domain and src/webhooks: every test of theirs that needs no Postgres. */
export default defineConfig({
  test: {
    include: [
      'test/unit/domain/**/*.test.ts',
      'test/unit/webhooks/**/*.test.ts',
      'test/integration/webhooks/{guarded-agent,resolver-dns,sender,sender-faults,sender-guard}.test.ts',
    ],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    sequence: { sequencer: UnitTestsFirst },
    isolate: false,
  },
});
