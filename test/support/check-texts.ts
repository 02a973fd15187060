// Runs the tests of the sources' texts (test/*.test.ts: language, links, imports, npx) as a part of `npm run check`.
// Prints one line when they pass, and otherwise the failed assertions only.
import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { promisify } from 'node:util'
import { PROJECT_DIR } from './project.ts'

const files = globSync('test/*.test.ts', { cwd: PROJECT_DIR }).sort()
const results = await Promise.all(files.map(runFile))
const failures = results.filter((result) => result !== null)
for (const { file, output } of failures) console.error(`${file}\n${listFailures(output)}`)
if (failures.length > 0) process.exitCode = 1
else console.log(`Checked the texts: ${files.length} files of tests passed.`)

/** Returns the output of a file that failed, and null for one that passed. */
async function runFile(file: string): Promise<{ file: string; output: string } | null> {
  const env = { ...process.env, TAP: '1' }
  try {
    await promisify(execFile)(process.execPath, [file], { cwd: PROJECT_DIR, env, maxBuffer: 64e6 })
    return null
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    return { file, output: `${stdout}${stderr}` }
  }
}

/** The complete output when it has no failed assertion: the file ended with an error. */
function listFailures(output: string): string {
  const assertions = output.match(/^ +not ok .*\n( +---\n[\s\S]*?\n +\.\.\.\n)?/gm) ?? []
  return assertions.length > 0 ? assertions.join('') : output
}
