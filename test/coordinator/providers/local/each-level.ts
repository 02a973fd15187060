// Runs tests of the local provider at each isolation level.
import t, { type Test } from 'tap'
import type { Level } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { PermanentProviderError } from '../../../../coordinator/providers/provider.ts'
import { ISOLATION_LEVELS } from '../../../../shared/api/boxes.ts'
import { findLevelProblem } from '../../../support/isolation-levels.ts'

/** Runs the test at each isolation level. Skips levels that do not work on this machine, with the reason. */
export function testEachLevel(
  name: string,
  body: (test: Test, level: Level) => Promise<void>,
  levels: readonly Level[] = ISOLATION_LEVELS,
): void {
  for (const level of levels) {
    t.test(`${name} (level ${level})`, async (test) => {
      try {
        await body(test, level)
      } catch (error) {
        // A host at this level does not open.
        const problem = error instanceof PermanentProviderError && (await findLevelProblem(level))
        if (problem === false) throw error
        test.pass('the level works on this machine', { skip: problem })
      }
    })
  }
}
