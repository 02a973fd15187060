// The rotation of coordinator.log by size: no line is lost or cut, and the size of all files is limited.
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createLogRotation } from '../../../../coordinator/base/log/rotate-log.ts'
import { createTempDir } from '../../../support/temp-dir.ts'

const LINE = `${'x'.repeat(99)}\n`

function openLog(t: Test, flags = 'a') {
  const dir = createTempDir(t, 'rotate-log')
  const path = join(dir, 'coordinator.log')
  const fd = openSync(path, flags, 0o600)
  t.teardown(() => closeSync(fd))
  return { dir, path, fd }
}

t.test('keeps four earlier files', async (t) => {
  const { dir, path, fd } = openLog(t)
  const rotate = createLogRotation({ fd, path, maxBytes: 1000 })
  for (let i = 0; i < 100; i += 1) {
    rotate()
    writeSync(fd, `${i}\n`.padStart(100, ' '))
  }
  t.same(
    readdirSync(dir).sort(),
    ['', '.1', '.2', '.3', '.4'].map((end) => `coordinator.log${end}`),
  )
  const text = ['.4', '.3', '.2', '.1', ''].map((end) => readFileSync(path + end, 'utf8')).join('')
  t.same(
    text.trim().split(/\s+/).map(Number),
    Array.from({ length: 50 }, (_, i) => 50 + i),
    'the newest lines, in order',
  )
  t.equal(statSync(`${path}.1`).mode & 0o777, 0o600)
})

t.test('when the content cannot be copied, the log continues', async (t) => {
  const { path, fd } = openLog(t)
  const rotate = createLogRotation({ fd, path, maxBytes: 1000 })
  mkdirSync(`${path}.new`)
  for (let i = 0; i < 30; i += 1) {
    rotate()
    writeSync(fd, LINE)
  }
  t.equal(readFileSync(path, 'utf8'), LINE.repeat(30))
})

t.test('a file of the operator is not rotated', async (t) => {
  for (const [flags, other] of [
    ['a', 'other.log'],
    ['w', 'coordinator.log'],
  ] as const) {
    const { dir, path, fd } = openLog(t, flags)
    const rotate = createLogRotation({ fd, path: join(dir, other), maxBytes: 1 })
    for (let i = 0; i < 3; i += 1) {
      rotate()
      writeSync(fd, LINE)
    }
    t.equal(readFileSync(path, 'utf8'), LINE.repeat(3))
    t.notOk(existsSync(`${path}.1`))
  }
})

t.test('a log that was moved while it is open keeps its lines', async (t) => {
  const { path, fd } = openLog(t)
  const rotate = createLogRotation({ fd, path, maxBytes: 1000 })
  writeSync(fd, LINE)
  renameSync(path, `${path}.moved`)
  writeFileSync(path, 'another file')
  for (let i = 0; i < 30; i += 1) {
    rotate()
    writeSync(fd, LINE)
  }
  t.equal(readFileSync(`${path}.moved`, 'utf8'), LINE.repeat(31))
  t.equal(readFileSync(path, 'utf8'), 'another file')
  t.notOk(existsSync(`${path}.1`))
})
