import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openSpool, type Spool, START } from '../../../agent/reports/spool.ts'
import { openState } from '../../../agent/state.ts'
import type { DurableReport } from '../../../shared/api/reports.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { silent, until } from '../../support/tunnel.ts'

const report = (at: number, pad = 0): DurableReport => ({
  type: 'agent.started',
  at,
  instanceId: 'i'.repeat(pad),
  bootId: 'b',
  agentVersion: 'v',
})

const folder = (t: Test): string => tempFolder(t, 'spool')

async function reopen(
  path: string,
  options: { maxBytes?: number; segmentBytes?: number; bootId?: string } = {},
): Promise<Spool> {
  const state = await openState(path, silent)
  return openSpool({ folder: join(path, 'reports'), state, log: silent, ...options })
}

type Line = { epoch: string; seq: number; report: { at: number } }

async function kept(spool: Spool): Promise<Line[]> {
  const lines: Line[] = []
  for (let cursor = START; ; ) {
    const found = await spool.read(cursor)
    if (found === null) return lines
    cursor = found.next
    for (const line of found.lines.toString().trimEnd().split('\n')) lines.push(JSON.parse(line))
  }
}
const numbers = async (spool: Spool) => (await kept(spool)).map(({ seq }) => seq)

t.test('reports are numbered, kept across restarts and forgotten once acknowledged', async (t) => {
  const path = folder(t)
  let spool = await reopen(path)
  await Promise.all([1, 2, 3].map((at) => spool.append(report(at))))
  t.same(await numbers(spool), [1, 2, 3])
  const { epoch } = spool
  await spool.close()

  spool = await reopen(path)
  t.equal(spool.epoch, epoch)
  await spool.append(report(4))
  t.same(
    (await kept(spool)).map(({ report, seq }) => [seq, report.at]),
    [
      [1, 1],
      [2, 2],
      [3, 3],
      [4, 4],
    ],
  )
  t.ok(await spool.acknowledge({ epoch, seq: 4 }))
  t.same(await numbers(spool), [])
  await spool.close()
  t.same(await readdir(join(path, 'reports')), [], 'nothing is left on the disk')

  spool = await reopen(path)
  await spool.append(report(5))
  t.same(await numbers(spool), [5], 'numbers go on after everything was forgotten and the agent restarted')
  await spool.close()
})

t.test('few reports cost no file each: the one they are in is deleted once it is worth it', async (t) => {
  const path = folder(t)
  const files = () => readdir(join(path, 'reports'))
  const spool = await reopen(path)
  const { epoch } = spool
  const state = await readFile(join(path, 'state.json'), 'utf8')
  for (const seq of [1, 2, 3]) {
    spool.note(report(seq))
    t.same(await numbers(spool), [seq], 'what was acknowledged is not told again')
    t.ok(await spool.acknowledge({ epoch, seq }))
    t.same([spool.size(), (await files()).length], [0, 1])
  }
  t.equal(await readFile(join(path, 'state.json'), 'utf8'), state)

  // As after a kill: nothing was closed.
  const next = await reopen(path)
  t.same(await numbers(next), [1, 2, 3], 'told again, under the same numbers')
  t.ok(await next.acknowledge({ epoch, seq: 2 }))
  t.same(await numbers(next), [1, 2, 3])
  for (let seq = 4; seq <= 403; seq++) next.note(report(seq, 200))
  t.ok(await next.acknowledge({ epoch, seq: 402 }))
  t.equal((await numbers(next)).at(-1), 403)
  t.ok(await next.acknowledge({ epoch, seq: 403 }))
  t.same([next.size(), await files()], [0, []])
  next.note(report(404))
  t.same(await numbers(next), [404])
  await next.close()
})

t.test('an acknowledgement for another spool or of the future changes nothing', async (t) => {
  const spool = await reopen(folder(t))
  await spool.append(report(1))
  t.notOk(await spool.acknowledge({ epoch: 'another', seq: 1 }))
  t.notOk(await spool.acknowledge({ epoch: spool.epoch, seq: 2 }))
  t.same(await numbers(spool), [1])
  await spool.close()
})

t.test('a last line that is torn is cut off, and its number is used again', async (t) => {
  for (const torn of ['{"type":"report","epo', '\0\0\0\0\0\0\n', '{"epoch":"other","seq":3}\n']) {
    const path = folder(t)
    let spool = await reopen(path)
    await spool.append(report(1))
    await spool.append(report(2))
    await spool.close()
    await appendFile(join(path, 'reports', '0000000000000001.ndjson'), torn)
    spool = await reopen(path)
    await spool.append(report(3))
    t.same(
      (await kept(spool)).map(({ report, seq }) => [seq, report.at]),
      [
        [1, 1],
        [2, 2],
        [3, 3],
      ],
    )
    await spool.close()
  }
})

t.test('a spool that is full gives up the oldest, and only those', async (t) => {
  const spool = await reopen(folder(t), { maxBytes: 10_000, segmentBytes: 2000 })
  for (let at = 1; at <= 100; at++) await spool.append(report(at, 60))
  const left = await numbers(spool)
  t.equal(left.at(-1), 100)
  t.ok(left.length > 20 && left.length < 100, `${left.length} are left`)
  t.same(
    left,
    Array.from({ length: left.length }, (_, i) => 101 - left.length + i),
    'without a gap',
  )
  await spool.close()
})

t.test('a state file that is lost or damaged starts a new epoch, never old numbers again', async (t) => {
  const path = folder(t)
  const first = await reopen(path)
  await first.append(report(1))
  await first.close()
  await writeFile(join(path, 'state.json'), '{"epo')
  const second = await reopen(path)
  t.not(second.epoch, first.epoch)
  await second.append(report(2))
  t.same(
    (await kept(second)).map(({ epoch, seq }) => [epoch, seq]),
    [[second.epoch, 1]],
  )
  await second.close()
})

t.test('what was said to be kept survives kill -9', async (t) => {
  const path = folder(t)
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../fixtures/spool-writer.ts'), path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await until('it has kept some', () => output.split('\n').length > 50)
  child.kill('SIGKILL')
  await once(child, 'close')
  const said = output.split('\n').slice(0, -1).map(Number)
  const spool = await reopen(path)
  const found = (await kept(spool)).map(({ report }) => report.at)
  t.same(found.slice(0, said.length), said)
  t.ok(found.length <= said.length + 10, 'at most the unanswered ones come on top')
  t.match(await readFile(join(path, 'state.json'), 'utf8'), spool.epoch)
  await spool.close()
})

t.test('a report that is noted is there at once, in order, and told a little later', async (t) => {
  const path = folder(t)
  const spool = await reopen(path)
  const never = new AbortController().signal
  const told = spool.appended(never).then(() => 'told')
  spool.note(report(1))
  t.equal(await Promise.race([told, Promise.resolve('not yet')]), 'not yet')
  const kept = spool.append(report(2))
  spool.note(report(3))
  t.equal(await told, 'told', 'with what is urgent')
  await kept
  const again = spool.appended(never)
  spool.note(report(4))
  await again
  const other = await reopen(path)
  t.same(await numbers(other), [1, 2, 3, 4], 'without a sync or a close')
  await other.close()
  await spool.close()
  t.throws(() => spool.note(report(5)), /closed/)
  await t.rejects(spool.append(report(5)), /closed/)
})

t.test('after another boot, numbers that a power cut may have swallowed are not given again', async (t) => {
  const path = folder(t)
  const before = await reopen(path, { bootId: 'one' })
  before.note(report(1))
  await before.close()
  const same = await reopen(path, { bootId: 'one' })
  same.note(report(2))
  t.same(await numbers(same), [1, 2])
  await same.close()
  const after = await reopen(path, { bootId: 'two' })
  after.note(report(3))
  const [, , last] = await numbers(after)
  t.ok(last !== undefined && last > 1_000_000)
  t.ok(
    await after.acknowledge({ epoch: after.epoch, seq: 5 }),
    'the coordinator may have had more than is left',
  )
  t.same(
    (await kept(after)).map(({ report }) => report.at),
    [3],
  )
  await after.close()
})

t.test('room: there at once while there is some, and again once enough was taken', async (t) => {
  const spool = await reopen(folder(t), { maxBytes: 10_000, segmentBytes: 2000 })
  const signal = new AbortController().signal
  await spool.room(signal)
  let seq = 0
  while (spool.size() <= spool.roomBytes) {
    spool.note(report(1, 60))
    seq += 1
  }
  let room = false
  const waiting = spool.room(signal).then(() => {
    room = true
  })
  await spool.acknowledge({ epoch: spool.epoch, seq: 1 })
  t.notOk(room)
  await spool.acknowledge({ epoch: spool.epoch, seq })
  await waiting
  t.equal(spool.size(), 0)
  const gone = new AbortController()
  while (spool.size() <= spool.roomBytes) spool.note(report(1, 60))
  const given = spool.room(gone.signal)
  gone.abort(new Error('gone'))
  await t.rejects(given, /gone/)
  await spool.close()
})
