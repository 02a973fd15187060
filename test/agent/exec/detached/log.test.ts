// The end of a log that is followed is read without waiting, and by the same rules as the rest of it.
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { OnChange } from '../../../../agent/exec/detached/changes.ts'
import { openLog } from '../../../../agent/exec/detached/log.ts'
import { headOf } from '../../../../agent/exec/detached/ring.ts'
import type { LogBytes } from '../../../../agent/exec/detached/types.ts'
import { watchFile } from '../../../../agent/exec/detached/watch-file.ts'
import { mixedBytes, seeded } from '../../../support/random.ts'
import { tempFolder } from '../../../support/temp-folder.ts'
import { until } from '../exec-app.ts'

const KEEP = 65_536
const MiB = 1024 * 1024

function newLog(t: Test, { keepBytes = 64 * MiB } = {}) {
  const dir = tempFolder(t, 'log')
  const path = join(dir, 'stdout')
  writeFileSync(path, '')
  let finalSize: number | null = null
  let tell: OnChange = () => undefined
  const onWrite = (changed: OnChange) => {
    tell = changed
    return watchFile(path, () => changed())
  }
  const log = openLog({ path, keepBytes, finalSize: () => finalSize, onWrite })
  return {
    log,
    /** As who wrote it may do. */
    tell: (added: LogBytes) => tell(added),
    append: (more: string | Buffer) => appendFileSync(path, more),
    end(size: number) {
      finalSize = size
    },
    /** As a reader that follows is after its first look. */
    async follow(onChange?: () => void) {
      let news = false
      t.teardown(
        log.watch(() => {
          news = true
          onChange?.()
        }),
      )
      await log.read(0, 1)
      await until('it is open', () => log.readNow(0, 1) !== null)
      return () => news
    },
  }
}

t.test('only who watches a log and stands near its end is answered at once', async (t) => {
  const { log, append, end, follow } = newLog(t)
  append('one ')
  t.equal(log.readNow(0, 100), null, 'nobody has opened it')
  await log.read(0, 100)
  t.equal(log.readNow(0, 100), null, 'nor is it open any more')

  await follow()
  t.equal(log.readNow(0, 100)?.bytes.toString(), 'one ')
  append('two')
  t.equal(log.readNow(4, 100)?.bytes.toString(), 'two')
  t.match(log.readNow(7, 100), { offset: 7, bytes: { length: 0 } })
  t.equal(log.readNow(0, 5)?.bytes.toString(), 'one t')

  append(Buffer.alloc(MiB, 'x'))
  t.equal(log.readNow(7, 100)?.bytes.length, 100)
  t.equal(log.readNow(0, 100), null, 'that far back the disk may have to be asked')
  t.equal(log.readNow(MiB, 100)?.bytes.length, 7)

  append('nobody wrote this')
  end(MiB + 7)
  t.equal(log.readNow(MiB, 100), null)
  t.equal((await log.read(MiB, 100)).bytes.length, 7, 'what comes after the end is left out')
})

t.test('what is told of a write need not be read, by who stands before it', async (t) => {
  const { log, append, tell, end, follow } = newLog(t)
  let from = 0
  let read: string | undefined
  await follow(() => {
    read = log.readNow(from, 5)?.bytes.toString()
  })
  const readWhenTold = (offset: number, text: string) => {
    tell({ offset, bytes: Buffer.from(text) })
    return read
  }
  append('one two')
  t.equal(readWhenTold(0, 'ONE'), 'ONE')
  t.equal(log.readNow(0, 5)?.bytes.toString(), 'one t', 'it is not kept')
  t.equal(readWhenTold(1, 'NE'), 'one t', 'behind where the reader stands')
  from = 4
  t.equal(readWhenTold(0, 'ONE'), 'two', 'before it')
  t.equal(readWhenTold(4, 'MUCH MORE'), 'two', 'more than is wanted')
  end(7)
  t.equal(readWhenTold(4, 'TWO'), undefined, 'of a process that has ended')
})

t.test('what may have been given up is never told, however it is read', async (t) => {
  const random = seeded(3)
  const { log, append, follow } = newLog(t, { keepBytes: KEEP })
  await follow()
  let all = Buffer.alloc(0)
  let atOnce = 0
  for (let step = 0; step < 400; step++) {
    const more = mixedBytes(random, Math.floor(random() * 2000))
    append(more)
    all = Buffer.concat([all, more])
    const from = Math.floor(random() * all.length)
    const max = 1 + Math.floor(random() * 100_000)
    const head = headOf(all.length, KEEP)
    const check = ({ offset, bytes }: LogBytes) => {
      if (bytes.length > 0)
        t.ok(offset >= Math.max(from, head), `${offset}: from ${from}, the head at ${head}`)
      t.ok(bytes.equals(all.subarray(offset, offset + bytes.length)))
    }
    const now = log.readNow(from, max)
    if (now !== null) {
      atOnce += 1
      check(now)
    }
    check(await log.read(from, max))
  }
  t.ok(atOnce > 100, `${atOnce} reads at once`)
})
