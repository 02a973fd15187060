// The size of a log on disk is bounded, and its offsets never shift.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { firstRetainedOffset } from '../../../../agent/exec/detached/log-bounds.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createAgent, createHome, isNativeRunner, openAgent, runnerKind } from './support.ts'

const MiB = 1024 * 1024
const MAX_BYTES = 4 * MiB
/** A log exceeds its bound by at most one read from a pipe, and partly used blocks at both ends. */
const SLACK_BYTES = 128 * 1024

const bytesOnDisk = (path: string) => statSync(path).blocks * 512

/** False where the file system of the tests cannot punch holes. */
const CAN_PUNCH_HOLES = (() => {
  try {
    execFileSync('sh', ['-c', 'f=$(mktemp) && fallocate -p -o 0 -l 4096 "$f"; s=$?; rm -f "$f"; exit $s'], {
      stdio: 'ignore',
    })
    return true
  } catch {
    return false
  }
})()

t.test('discards the head of a log in steps of an eighth of the maximum size', async (t) => {
  t.equal(firstRetainedOffset(0, MAX_BYTES), 0)
  t.equal(firstRetainedOffset(MAX_BYTES, MAX_BYTES), 0)
  t.equal(firstRetainedOffset(MAX_BYTES + 1, MAX_BYTES), MAX_BYTES / 8)
  t.equal(firstRetainedOffset(MAX_BYTES + MAX_BYTES / 8, MAX_BYTES), MAX_BYTES / 8)
  t.equal(firstRetainedOffset(MAX_BYTES + MAX_BYTES / 8 + 1, MAX_BYTES), MAX_BYTES / 4)
  for (let size = 0; size < 300_000; size += 777) {
    const retained = size - firstRetainedOffset(size, 65_536)
    t.ok(retained >= Math.min(size, (65_536 * 7) / 8) && retained <= 65_536)
  }
})

const formatLine = (offset: number) => `${String(offset).padStart(15, '0')}\n`

t.test('200 MB of output take 4 MiB on disk', { skip: !CAN_PUNCH_HOLES || !isNativeRunner }, async (t) => {
  const { start, getProcess, waitForExit, getStatus, kill } = await createAgent(t, { maxLogBytes: MAX_BYTES })
  // Each line is 16 bytes: its own offset.
  const { processId } = await start(
    `awk 'BEGIN { for (i = 0; i < 12500000; i++) printf "%015d\\n", i * 16 }'; echo end >&2; exit 3`,
  )
  const log = getProcess(processId).logs.stdout
  let peakBytes = 0
  // A concurrent reader gets only correct bytes.
  let [offset, received] = [0, 0]
  while (getProcess(processId).exit === null) {
    const read = await log.read(offset, 256 * 1024)
    t.ok(read.offset >= offset) || t.bailout()
    const first = Math.ceil(read.offset / 16) * 16
    for (let at = first; at + 16 <= read.offset + read.bytes.length; at += 64 * 1024 + 16) {
      const line = read.bytes.subarray(at - read.offset, at - read.offset + 16).toString()
      if (line !== formatLine(Math.floor(at / 16) * 16)) t.fail(`${at}: ${line}`)
    }
    offset = read.offset + read.bytes.length
    received += read.bytes.length
    peakBytes = Math.max(peakBytes, bytesOnDisk(log.path))
    await delay(1)
  }
  t.match(await waitForExit(processId), { exitCode: 3 })
  t.ok(peakBytes <= MAX_BYTES + SLACK_BYTES, `${peakBytes} bytes on disk`)
  t.ok(bytesOnDisk(log.path) <= MAX_BYTES + SLACK_BYTES)
  t.ok(received > MAX_BYTES)
  t.equal(await log.size(), 200_000_000)
  const tail = await getStatus(processId, 32)
  t.match(tail, {
    stdout: formatLine(199_999_968) + formatLine(199_999_984),
    stdoutTruncated: true,
    stderr: 'end\n',
  })
  t.match(await log.read(0, 16), { offset: firstRetainedOffset(200_000_000, MAX_BYTES) })
  await kill(processId)
})

t.test('a log is bounded while no agent runs', { skip: !CAN_PUNCH_HOLES || !isNativeRunner }, async (t) => {
  const { start, getProcess, close } = await createAgent(t, { maxLogBytes: MAX_BYTES })
  const { processId, logPath } = await start('head -c 100000000 /dev/zero; echo x; exec sleep 600')
  const process = getProcess(processId)
  await close()
  await waitUntil('the runner has written everything', () => statSync(logPath).size >= 100_000_002)
  t.equal(await process.logs.stdout.size(), 100_000_002)
  t.ok(bytesOnDisk(logPath) <= MAX_BYTES + SLACK_BYTES, `${bytesOnDisk(logPath)} bytes on disk`)
})

t.test(
  'with the shell runner, the agent bounds the log',
  { skip: !CAN_PUNCH_HOLES || runnerKind === 'native' },
  async (t) => {
    const { start, getProcess, getStatus } = await createAgent(t, {
      maxLogBytes: MAX_BYTES,
      runnerKind: 'sh',
    })
    const { processId, logPath } = await start('head -c 20000000 /dev/zero; echo x; exec sleep 600')
    await waitUntil(
      'the output is complete and the log within its bound',
      () => statSync(logPath).size === 20_000_002 && bytesOnDisk(logPath) <= MAX_BYTES + SLACK_BYTES,
    )
    t.ok(bytesOnDisk(logPath) <= MAX_BYTES + SLACK_BYTES, `${bytesOnDisk(logPath)} bytes on disk`)
    t.match(await getProcess(processId).logs.stdout.read(0, 16), {
      offset: firstRetainedOffset(20_000_002, MAX_BYTES),
    })
    t.match(await getStatus(processId, 2), { stdout: 'x\n' })
  },
)

t.test(
  'on a file system that cannot punch holes, output beyond the bound is discarded',
  { skip: !isNativeRunner },
  async (t) => {
    const home = createHome(t)
    mkdirSync(join(home, '.state'))
    const mounted = spawnSync('mount', ['-t', 'ramfs', 'boxwood-test', join(home, '.state')], {
      stdio: 'ignore',
    })
    if (mounted.status !== 0)
      return t.pass('the log is bounded', { skip: 'mounting a file system is not permitted' })
    t.teardown(() => spawnSync('umount', ['--lazy', join(home, '.state')]))
    const { start, waitForExit, getProcess } = await openAgent(t, home, { maxLogBytes: 65_536 })
    const { processId } = await start('seq 100000; echo done >&2; exit 3')
    t.match(await waitForExit(processId), { exitCode: 3 })
    const { stdout } = getProcess(processId).logs
    t.equal(await stdout.size(), 65_536)
    const { offset, bytes } = await stdout.read(0, 65_536)
    t.equal(offset, 0)
    t.match(bytes.toString(), /^1\n2\n3\n[\s\S]*\[boxwood: log limit of 65536 bytes reached\. [^\]]*\]\n$/)
  },
)

t.test('notifies watchers of new output', async (t) => {
  const { start, getProcess, kill, home } = await createAgent(t)
  const { processId } = await start('while [ ! -e go ]; do sleep 0.02; done; echo hello; exec sleep 600')
  const { stdout } = getProcess(processId).logs
  let calls = 0
  const stop = stdout.watch(() => {
    calls++
  })
  t.teardown(stop)
  writeFileSync(`${home}/go`, '')
  await waitUntil('the watcher was called', () => calls > 0)
  t.equal((await stdout.read(0, 100)).bytes.toString(), 'hello\n')
  stop()
  await kill(processId)
})
