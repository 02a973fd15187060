// Everything that is measured, in one run and as ratios; `--write` puts the figures into bench/README.md.
import { readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { benchExec } from './exec.ts'
import { benchFleet } from './fleet.ts'
import { benchIdle } from './idle.ts'
import { benchStream } from './stream.ts'
import { startBoxwood } from './support/boxwood.ts'
import { startSsh } from './support/ssh.ts'
import { markdown, type Table } from './support/table.ts'
import { benchTransfer } from './transfer.ts'

const README = new URL('README.md', import.meta.url)
const [BEGIN, END] = ['<!-- figures -->', '<!-- /figures -->']

async function measure(): Promise<Table[]> {
  const ssh = await startSsh()
  try {
    const boxwood = await startBoxwood()
    try {
      return [
        await benchIdle(boxwood),
        await benchExec(boxwood, ssh),
        ...(await benchTransfer(boxwood, ssh)),
        ...(await benchStream(boxwood, ssh)),
        await benchFleet(),
      ]
    } finally {
      await boxwood.close()
    }
  } finally {
    await ssh?.close()
  }
}

const tables = await measure()
const figures = [
  `Measured on ${cpus().length} cores, Node ${process.version}, everything on loopback and on the same cores.`,
  '',
  ...tables.map(markdown),
].join('\n')
console.log(figures)
if (process.argv.includes('--write')) {
  const text = await readFile(README, 'utf8')
  const [head, tail] = [text.split(BEGIN)[0], text.split(END)[1]]
  if (head === undefined || tail === undefined) throw new Error(`bench/README.md has lost its ${BEGIN} marks`)
  await writeFile(README, `${head}${BEGIN}\n\n${figures}\n${END}${tail}`)
}
