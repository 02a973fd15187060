// What is kept of the output: the last mebibyte of each stream, all that was written, and no memory beyond that.
import { readFileSync } from 'node:fs'
import t from 'tap'
import { execApp, isAlive, pidIn, startedUnder, waitUntil } from './exec-app.ts'

const MiB = 1024 * 1024

t.test('exactly one mebibyte is whole, one byte more is cut at the head', async (t) => {
  const { exec } = execApp(t)
  const whole = await exec(`head -c ${MiB} /dev/zero | tr '\\0' a`)
  t.equal(whole.stdoutTruncated, false)
  t.ok(whole.stdout === 'a'.repeat(MiB))
  const cut = await exec(`{ printf b; head -c ${MiB} /dev/zero | tr '\\0' a; } >&2`)
  t.match(cut, { stdout: '', stdoutTruncated: false, stderrTruncated: true })
  t.ok(cut.stderr === 'a'.repeat(MiB))
})

t.test('the end is kept', async (t) => {
  const { exec } = execApp(t)
  const { stdout, stdoutTruncated } = await exec('seq 1 400000')
  const all = Array.from({ length: 400_000 }, (_, index) => `${index + 1}\n`).join('')
  t.ok(stdout === all.slice(-MiB))
  t.equal(stdoutTruncated, true)
})

t.test('bytes that are no text become U+FFFD, and a byte order mark stays', async (t) => {
  const { exec } = execApp(t)
  const { stdout } = await exec(`printf '\\357\\273\\277a\\000b\\377\\303(\\360\\237\\230'`)
  t.equal(stdout, '\ufeffa\0b\ufffd\ufffd(\ufffd')
})

t.test('a character that the cut halves is left out', async (t) => {
  const { exec } = execApp(t)
  // Three bytes each, and the cut falls within one.
  const { stdout, stdoutTruncated } = await exec('yes € | head -n 400000 | tr -d "\\n"')
  t.equal(stdoutTruncated, true)
  t.ok(stdout === '€'.repeat(Math.floor(MiB / 3)))
})

t.test('a gibibyte passes in bounded memory', async (t) => {
  const { exec } = execApp(t)
  await exec(`head -c ${8 * MiB} /dev/zero`)
  const before = process.memoryUsage().rss
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss)
  }, 5)
  const result = await exec(`head -c ${1024 * MiB} /dev/zero; echo end >&2`)
  clearInterval(watch)
  t.match(result, { exitCode: 0, stdoutTruncated: true, stderr: 'end\n' })
  t.equal(result.stdout.length, MiB)
  t.ok(most > 0)
  t.ok(Math.max(most, process.memoryUsage().rss) - before < 48 * MiB, `grew by ${(most - before) / MiB} MiB`)
})

t.test('who holds the output in the background does not delay the answer, and lives on', async (t) => {
  const { exec, home } = execApp(t)
  const result = await exec(
    "sh -c 'echo $$ >pid; while :; do echo more; sleep 0.01; [ -e stop ] && exit; done' & echo hi",
  )
  t.match(result, { exitCode: 0, timedOut: false, stdout: /hi\n/ })
  const pid = await pidIn(home, 'pid')
  // It goes on writing after nobody listens, more than a pipe holds.
  await exec('sh -c "head -c 300000 /dev/zero; echo done >wrote" & exit 0')
  await waitUntil('the background wrote all it had', () => read(`${home}/wrote`) === 'done\n')
  t.equal(isAlive(pid), true)
  await exec('touch stop')
  await waitUntil('it ended when it was told', () => !isAlive(pid))
})

t.test('all that was written before the end is there', async (t) => {
  const { exec } = execApp(t)
  // The pipes stay open, so their end tells nothing. Several at once: the news of one's end makes Node notice the
  // ends of others too, whose last bytes nothing has read yet.
  const one = async () => {
    const { stdout, stderr } = await exec('sleep 0.2 & head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2')
    return stdout.length + stderr.length
  }
  for (let round = 0; round < 12; round++) {
    t.same(
      new Set(await Promise.all([one(), one(), one(), one(), one(), one(), one(), one()])),
      new Set([120_000]),
    )
  }
})

t.test('no descriptor is left behind, and no output of one command reaches another', async (t) => {
  const { exec, refused, home } = execApp(t)
  const count = async () => Number((await exec('ls /proc/$PPID/fd | wc -l')).stdout)
  await count()
  const before = await count()
  for (let round = 0; round < 100; round++) {
    t.match(await exec(`echo a${round}; echo b >&2`), { stdout: `a${round}\n`, stderr: 'b\n' })
    await exec('sleep 0.05 & (sleep 0.01; echo late; echo late >&2) & exit 0')
    await refused({ command: 'true', cwd: 'nowhere' })
  }
  await waitUntil('the last background writer is done', () => startedUnder(home).length === 0)
  const after = await count()
  // Pipes that the background held were replaced: by a batch or two, where a leak of one a round would be 100.
  t.ok(after - before < 80, `${before} became ${after}`)
})

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
