// Runs the tests of the sources' texts (test/*.test.ts: language, links, directories, imports, npx, optional programs) as a part of `npm run check`.
// Prints one line when they pass, and otherwise the failed assertions only.
import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { promisify } from 'node:util'
import { PROJECT_DIR } from './project.ts'
import { listFailures } from './suite/run-file.ts'

const files = globSync('test/*.test.ts', { cwd: PROJECT_DIR }).sort()
if (files.length === 0) throw new Error('test/*.test.ts selects no file')
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
