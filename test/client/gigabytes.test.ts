// 1 GiB through the client in bounded memory, in both directions, and a reader that is slower than the command.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'

const coordinator = await startCoordinatorWithBox(t)
const dir = createTempDir(t, 'client-gigabytes')

/** Runs a program with `boxwood` and `box` in a process of its own. Resolves with what it prints as JSON. */
async function runProgram(body: string) {
  const file = join(dir, 'program.ts')
  writeFileSync(
    file,
    `import { createHash } from 'node:crypto'
import { Boxwood } from '${join(PROJECT_DIR, 'client/exports.ts')}'
const boxwood = new Boxwood()
const box = await boxwood.boxes.get('${coordinator.box.hostname}')
const SIZE = 1024 * 1024 * 1024
const BLOCK = new Uint8Array(1024 * 1024).map((_byte, index) => index % 253)
${body}
const { maxRSS } = process.resourceUsage()
console.log(JSON.stringify({ ...result, maxMiB: Math.round(maxRSS / 1024) }))
process.exit()`,
  )
  const env = { ...process.env, BOXWOOD_URL: coordinator.url, BOXWOOD_API_KEY: coordinator.key }
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env })
  return JSON.parse(stdout)
}

/** Node itself has about 50 MiB, and fetch() 30. */
const MAX_MIB = 300

t.test('upload and download of 1 GiB from and to streams', async (t) => {
  const result = await runProgram(`
    const sent = createHash('sha256')
    let left = SIZE
    const body = new ReadableStream({
      pull(controller) {
        if (left === 0) return controller.close()
        left -= BLOCK.length
        sent.update(BLOCK)
        controller.enqueue(BLOCK)
      },
    }, { highWaterMark: 0 })
    await box.files.write('large', body)
    const received = createHash('sha256')
    for await (const part of await box.files.download('large')) received.update(part)
    const result = { size: (await box.files.stat('large')).size, isEqual: sent.digest('hex') === received.digest('hex') }`)
  t.match(result, { size: 1024 ** 3, isEqual: true })
  t.ok(result.maxMiB < MAX_MIB, `${result.maxMiB} MiB`)
})

t.test(
  'a reader that is slower than the command gets the number of the missing bytes, and the end',
  async (t) => {
    const result = await runProgram(`
    const command = await box.start('yes | head -c 400000000; printf END')
    let [size, lost, last] = [0, 0, '']
    for await (const { bytes, missing } of command.output()) {
      if (size === 0) await new Promise((resolve) => setTimeout(resolve, 2000))
      size += bytes.length
      lost += missing
      last = new TextDecoder().decode(bytes).slice(-3)
    }
    const result = { total: size + lost, last }`)
    t.match(result, { total: 400_000_003, last: 'END' })
    t.ok(result.maxMiB < MAX_MIB, `${result.maxMiB} MiB`)
  },
)
