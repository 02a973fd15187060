// The output of synchronous commands: complete, truncated to the last 1 MiB of each stream, in bounded memory.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { measureReferencedBytes } from '../../support/heap.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createExecApp, findPidsByHome, isAlive, waitForPid } from './support.ts'

const MiB = 1024 * 1024

t.test('returns exactly 1 MiB, and truncates one byte more at the head', async (t) => {
  const { exec } = createExecApp(t)
  const complete = await exec(`head -c ${MiB} /dev/zero | tr '\\0' a`)
  t.equal(complete.stdoutTruncated, false)
  t.ok(complete.stdout === 'a'.repeat(MiB))
  const truncated = await exec(`{ printf b; head -c ${MiB} /dev/zero | tr '\\0' a; } >&2`)
  t.match(truncated, { stdout: '', stdoutTruncated: false, stderrTruncated: true })
  t.ok(truncated.stderr === 'a'.repeat(MiB))
})

t.test('returns the last 1 MiB of longer output', async (t) => {
  const { exec } = createExecApp(t)
  const { stdout, stdoutTruncated } = await exec('seq 1 400000')
  const all = Array.from({ length: 400_000 }, (_, index) => `${index + 1}\n`).join('')
  t.ok(stdout === all.slice(-MiB))
  t.equal(stdoutTruncated, true)
})

t.test('invalid UTF-8 becomes U+FFFD, and a byte order mark is retained', async (t) => {
  const { exec } = createExecApp(t)
  const { stdout } = await exec(`printf '\\357\\273\\277a\\000b\\377\\303(\\360\\237\\230'`)
  t.equal(stdout, '\ufeffa\0b\ufffd\ufffd(\ufffd')
})

t.test('leaves out a character that the truncation splits', async (t) => {
  const { exec } = createExecApp(t)
  // Three bytes each: 1 MiB is not a multiple of three.
  const { stdout, stdoutTruncated } = await exec('yes € | head -n 400000 | tr -d "\\n"')
  t.equal(stdoutTruncated, true)
  t.ok(stdout === '€'.repeat(Math.floor(MiB / 3)))
})

t.test('memory is bounded for 256 MiB of output', async (t) => {
  const { exec, home } = createExecApp(t)
  await exec(`head -c ${8 * MiB} /dev/zero`)
  const before = { rss: process.memoryUsage().rss, referenced: await measureReferencedBytes() }
  let peak = 0
  const sampling = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss)
  }, 5)
  const response = exec(
    `head -c ${256 * MiB} /dev/zero; touch written; until test -e go; do sleep 0.05; done; echo end >&2`,
  )
  await waitUntil('the output is written', () => existsSync(`${home}/written`))
  const growth = (await measureReferencedBytes()) - before.referenced
  writeFileSync(`${home}/go`, '')
  const result = await response
  clearInterval(sampling)
  t.match(result, { exitCode: 0, stdoutTruncated: true, stderr: 'end\n' })
  t.equal(result.stdout.length, MiB)
  t.ok(growth < 4 * MiB, `references ${growth} bytes more after the output`)
  t.ok(peak > 0)
  // Half of the output: how much garbage there is depends on the garbage collector.
  t.ok(peak - before.rss < 128 * MiB, `grew by ${(peak - before.rss) / MiB} MiB`)
})

t.test(
  'a background process that keeps stdout open continues to run and does not delay the response',
  async (t) => {
    const { exec, home } = createExecApp(t)
    const result = await exec(
      "sh -c 'echo $$ >pid; while :; do echo more; sleep 0.01; [ -e stop ] && exit; done' & echo hi",
    )
    t.match(result, { exitCode: 0, timedOut: false, stdout: /hi\n/ })
    const pid = await waitForPid(home, 'pid')
    // After the response, a background process can write more than the capacity of a pipe.
    await exec('sh -c "head -c 300000 /dev/zero; echo done >wrote" & exit 0')
    await waitUntil(
      'the background process has written everything',
      () => readIfExists(`${home}/wrote`) === 'done\n',
    )
    t.equal(isAlive(pid), true)
    await exec('touch stop')
    await waitUntil('the background process has exited', () => !isAlive(pid))
  },
)

t.test('returns all output written before the exit', async (t) => {
  const { exec } = createExecApp(t)
  // The background process keeps the pipes open, so there is no end of file. Concurrently, because Node handles several
  // exits in one event loop turn, possibly before the last output of those commands has been read.
  const countOutput = async () => {
    const { stdout, stderr } = await exec('sleep 0.2 & head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2')
    return stdout.length + stderr.length
  }
  for (let round = 0; round < 4; round++)
    t.same(await Promise.all(Array.from({ length: 8 }, countOutput)), Array(8).fill(120_000))
})

t.test('leaks no descriptor, and no output of one command into another', async (t) => {
  const { exec, expectError, home } = createExecApp(t)
  const countDescriptors = async () => Number((await exec('ls /proc/$PPID/fd | wc -l')).stdout)
  await countDescriptors()
  const before = await countDescriptors()
  for (let round = 0; round < 100; round++) {
    t.match(await exec(`echo a${round}; echo b >&2`), { stdout: `a${round}\n`, stderr: 'b\n' })
    await exec('sleep 0.05 & (sleep 0.01; echo late; echo late >&2) & exit 0')
    await expectError({ command: 'true', cwd: 'nonexistent' })
  }
  await waitUntil('the last background process has exited', () => findPidsByHome(home).length === 0)
  await waitUntil('every descriptor is closed', async () => (await countDescriptors()) === before)
})

function readIfExists(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
