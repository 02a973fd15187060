// The names that tests give to boxes: a box without a name gets one at random, which a test must not need.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FRUITS } from '../coordinator/boxes/names.ts'
import { PROJECT_DIR } from './support/project.ts'

const NAMED = new RegExp(`(?:\\bname: |'create', )'(${FRUITS.join('|')})'`, 'g')

t.test('no test creates a box with a name that another box may have got', async (t) => {
  const files = globSync('{test,bench}/**/*.ts', {
    cwd: PROJECT_DIR,
    exclude: (path) => /node_modules|\/names\.test\.ts$/.test(path),
  })
  t.ok(files.length > 600, `${files.length} files`)
  const found = files.flatMap((file) =>
    [...readFileSync(join(PROJECT_DIR, file), 'utf8').matchAll(NAMED)].map(([text]) => `${file}: ${text}`),
  )
  t.same(found, [], 'cherry, fig, kiwi, lime and plum are given to no box at random')
})
