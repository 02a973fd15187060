// coordinator/start.sh, which `npm start` runs.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PROJECT_DIR, START_SCRIPT } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'

t.test('before npm ci, a start prints what to do', async (t) => {
  const dir = createTempDir(t, 'start-script')
  mkdirSync(join(dir, 'coordinator'))
  cpSync(join(PROJECT_DIR, START_SCRIPT), join(dir, START_SCRIPT))
  const { status, stdout, stderr } = spawnSync(join(dir, START_SCRIPT), { encoding: 'utf8' })
  t.equal(status, 1)
  t.equal(stdout, '')
  t.equal(stderr, `The packages of Boxwood are not installed. Run \`npm ci\` in ${dir}.\n`)
})
