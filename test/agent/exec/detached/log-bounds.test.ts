// A log takes no more of the disk than its bound, however much and however fast a command writes; offsets never move.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { firstRetainedOffset } from '../../../../agent/exec/detached/log-bounds.ts'
import { waitUntil } from '../exec-app.ts'
import { agent, isNative, kind, newHome, openAgent } from './support.ts'

const MiB = 1024 * 1024
const KEEP = 4 * MiB
/** What a runner may hold beyond the bound: one read of a pipe, and the blocks at both ends. */
const SLACK = 128 * 1024

const onDisk = (path: string) => statSync(path).blocks * 512

/** Where the tests run: on a file system that cannot punch holes the bound is kept in another way. */
const CAN_PUNCH = (() => {
  try {
    execFileSync('sh', ['-c', 'f=$(mktemp) && fallocate -p -o 0 -l 4096 "$f"; s=$?; rm -f "$f"; exit $s'], {
      stdio: 'ignore',
    })
    return true
  } catch {
    return false
  }
})()

t.test('which bytes are kept follows from the size alone', async (t) => {
  t.equal(firstRetainedOffset(0, KEEP), 0)
  t.equal(firstRetainedOffset(KEEP, KEEP), 0)
  t.equal(firstRetainedOffset(KEEP + 1, KEEP), KEEP / 8)
  t.equal(firstRetainedOffset(KEEP + KEEP / 8, KEEP), KEEP / 8)
  t.equal(firstRetainedOffset(KEEP + KEEP / 8 + 1, KEEP), KEEP / 4)
  for (let size = 0; size < 300_000; size += 777) {
    const kept = size - firstRetainedOffset(size, 65_536)
    t.ok(kept >= Math.min(size, (65_536 * 7) / 8) && kept <= 65_536)
  }
})

const number = (offset: number) => `${String(offset).padStart(15, '0')}\n`

t.test('200 MB through a bound of 4 MiB', { skip: !CAN_PUNCH || !isNative }, async (t) => {
  const { start, get, ended, status, kill } = await agent(t, { logBytes: KEEP })
  // Each line is 16 bytes and says where it stands.
  const { processId } = await start(
    `awk 'BEGIN { for (i = 0; i < 12500000; i++) printf "%015d\\n", i * 16 }'; echo end >&2; exit 3`,
  )
  const log = get(processId).logs.stdout
  let most = 0
  // A reader that follows as it may, and is never given what is not true.
  let [offset, given] = [0, 0]
  while (get(processId).exit === null) {
    const read = await log.read(offset, 256 * 1024)
    t.ok(read.offset >= offset) || t.bailout()
    const first = Math.ceil(read.offset / 16) * 16
    for (let at = first; at + 16 <= read.offset + read.bytes.length; at += 64 * 1024 + 16) {
      const line = read.bytes.subarray(at - read.offset, at - read.offset + 16).toString()
      if (line !== number(Math.floor(at / 16) * 16)) t.fail(`${at}: ${line}`)
    }
    offset = read.offset + read.bytes.length
    given += read.bytes.length
    most = Math.max(most, onDisk(log.path))
    await delay(1)
  }
  t.match(await ended(processId), { exitCode: 3 })
  t.ok(most <= KEEP + SLACK, `${most} bytes on the disk`)
  t.ok(onDisk(log.path) <= KEEP + SLACK)
  t.ok(given > KEEP)
  t.equal(await log.size(), 200_000_000)
  const tail = await status(processId, 32)
  t.match(tail, { stdout: number(199_999_968) + number(199_999_984), stdoutTruncated: true, stderr: 'end\n' })
  t.match(await log.read(0, 16), { offset: firstRetainedOffset(200_000_000, KEEP) })
  await kill(processId)
})

t.test('it holds while no agent is there', { skip: !CAN_PUNCH || !isNative }, async (t) => {
  const { start, get, close } = await agent(t, { logBytes: KEEP })
  const { processId, logPath } = await start('head -c 100000000 /dev/zero; echo x; exec sleep 600')
  const process = get(processId)
  await close()
  for (let tries = 0; statSync(logPath).size < 100_000_002 && tries < 2000; tries++) await delay(5)
  t.equal(await process.logs.stdout.size(), 100_000_002)
  t.ok(onDisk(logPath) <= KEEP + SLACK, `${onDisk(logPath)} bytes on the disk`)
})

t.test(
  'a script as the runner: the agent sees to it',
  { skip: !CAN_PUNCH || kind === 'native' },
  async (t) => {
    const { start, get, status } = await agent(t, { logBytes: KEEP, runner: 'sh' })
    const { processId, logPath } = await start('head -c 20000000 /dev/zero; echo x; exec sleep 600')
    for (let tries = 0; tries < 2000; tries++) {
      if (statSync(logPath).size === 20_000_002 && onDisk(logPath) <= KEEP + SLACK) break
      await delay(5)
    }
    t.ok(onDisk(logPath) <= KEEP + SLACK, `${onDisk(logPath)} bytes on the disk`)
    t.match(await get(processId).logs.stdout.read(0, 16), { offset: firstRetainedOffset(20_000_002, KEEP) })
    t.match(await status(processId, 2), { stdout: 'x\n' })
  },
)

t.test(
  'where the file system gives nothing back, what comes first is kept',
  { skip: !isNative },
  async (t) => {
    const home = newHome(t)
    mkdirSync(join(home, '.state'))
    const mounted = spawnSync('mount', ['-t', 'ramfs', 'boxwood-test', join(home, '.state')], {
      stdio: 'ignore',
    })
    if (mounted.status !== 0) return t.pass('bounded', { skip: 'a file system cannot be mounted here' })
    t.teardown(() => spawnSync('umount', ['--lazy', join(home, '.state')]))
    const { start, ended, get } = await openAgent(t, home, { logBytes: 65_536 })
    const { processId } = await start('seq 100000; echo all is well >&2; exit 3')
    t.match(await ended(processId), { exitCode: 3 })
    const { stdout } = get(processId).logs
    t.equal(await stdout.size(), 65_536)
    const { offset, bytes } = await stdout.read(0, 65_536)
    t.equal(offset, 0)
    t.match(bytes.toString(), /^1\n2\n3\n[\s\S]*\[boxwood: output discarded from here on: [\s\S]*\]\n$/)
  },
)

t.test('a reader is called when there is more', async (t) => {
  const { start, get, kill, home } = await agent(t)
  const { processId } = await start('while [ ! -e go ]; do sleep 0.02; done; echo hello; exec sleep 600')
  const { stdout } = get(processId).logs
  let calls = 0
  const stop = stdout.watch(() => {
    calls++
  })
  t.teardown(stop)
  writeFileSync(`${home}/go`, '')
  await waitUntil('it was told', () => calls > 0)
  t.equal((await stdout.read(0, 100)).bytes.toString(), 'hello\n')
  stop()
  await kill(processId)
})
