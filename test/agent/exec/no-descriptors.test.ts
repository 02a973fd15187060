// Out of descriptors: some commands are refused in the system's words, and afterwards all is well again.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'

const FIXTURE = fileURLToPath(new URL('fixtures/few-descriptors.ts', import.meta.url))

t.test('too many open files', async (t) => {
  // Clean of what tap puts there: it would open files of its own.
  const env = { PATH: process.env.PATH }
  const script = 'ulimit -n 100; exec "$0" "$1"'
  const { stdout } = await promisify(execFile)('sh', ['-c', script, process.execPath, FIXTURE], { env })
  const { first, many, last } = JSON.parse(stdout)
  t.same(first, { stdout: 'one\n' })
  const refused = many.filter((answer: object) => 'code' in answer)
  t.ok(refused.length > 0 && refused.length < many.length, `${refused.length} of ${many.length} refused`)
  for (const answer of refused) t.match(answer, { code: 'exec_failed', message: /too many open files/ })
  t.same(last, { stdout: 'one\n' })
})
