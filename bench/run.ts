// Runs all benchmarks and prints the results as Markdown. `--write` also writes them to bench/README.md. `--quick` runs only those of
// bench/quick.ts.
import { readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { benchAttached } from './attached.ts'
import { benchClient } from './client.ts'
import { benchCopies } from './copies.ts'
import { benchDashboard } from './dashboard.ts'
import { benchExec } from './exec.ts'
import { benchFeed } from './feed.ts'
import { benchFleet } from './fleet.ts'
import { benchGrowth } from './growth.ts'
import { benchHostile } from './hostile.ts'
import { benchIdle } from './idle.ts'
import { benchIdleBoxes } from './idle-boxes.ts'
import { benchLifecycle } from './lifecycle.ts'
import { benchMcp } from './mcp.ts'
import { benchMetrics } from './metrics.ts'
import { benchMetricsCodec } from './metrics-codec.ts'
import { benchProcessSnapshots } from './process-snapshots.ts'
import { benchPrompts } from './prompts.ts'
import { benchProviders } from './providers.ts'
import { benchQuick } from './quick.ts'
import { benchSample } from './sample.ts'
import { benchSecrets } from './secrets.ts'
import { benchShares } from './shares.ts'
import { benchSnapshots } from './snapshot.ts'
import { benchSpawner } from './spawner.ts'
import { benchStream } from './stream.ts'
import { startBoxwood } from './support/boxwood.ts'
import { startSsh } from './support/ssh.ts'
import { formatMarkdown, type Table } from './support/table.ts'
import { benchTelemetry } from './telemetry.ts'
import { benchTerminal } from './terminal.ts'
import { benchTransfer } from './transfer.ts'
import { benchUpload } from './upload.ts'

const README_URL = new URL('README.md', import.meta.url)
const [START_MARKER, END_MARKER] = ['<!-- results -->', '<!-- /results -->']

async function runBenchmarks(): Promise<Table[]> {
  const ssh = await startSsh()
  try {
    const boxwood = await startBoxwood()
    try {
      return [
        await benchIdle(boxwood),
        await benchIdleBoxes(),
        await benchSample(),
        ...(await benchExec(boxwood, ssh)),
        await benchSpawner(),
        ...(await benchAttached(boxwood, ssh)),
        await benchTerminal(boxwood, ssh),
        ...(await benchTransfer(boxwood, ssh)),
        await benchUpload(boxwood),
        ...(await benchClient(boxwood)),
        ...(await benchMcp(boxwood)),
        ...(await benchStream(boxwood, ssh)),
        await benchPrompts(boxwood),
        ...(await benchShares()),
        ...(await benchSecrets()),
        await benchLifecycle(),
        await benchProviders(),
        await benchCopies(),
        await benchFleet(),
        await benchFeed(),
        await benchGrowth(),
        await benchHostile(),
        await benchTelemetry(),
        ...(await benchMetrics()),
        ...(await benchDashboard()),
        benchMetricsCodec(),
        ...(await benchProcessSnapshots()),
        ...(await benchSnapshots()),
      ]
    } finally {
      await boxwood.close()
    }
  } finally {
    await ssh?.close()
  }
}

const isQuick = process.argv.includes('--quick')
if (isQuick && process.argv.includes('--write')) throw new Error('--quick prints its results only.')
const tables = isQuick ? await benchQuick() : await runBenchmarks()
const results = [
  `Measured on ${cpus().length} cores with Node ${process.version}. All processes share these cores and communicate over loopback.`,
  '',
  ...tables.map(formatMarkdown),
].join('\n')
console.log(results)
if (process.argv.includes('--write')) {
  const text = await readFile(README_URL, 'utf8')
  const [head, tail] = [text.split(START_MARKER)[0], text.split(END_MARKER)[1]]
  if (head === undefined || tail === undefined)
    throw new Error(
      `bench/README.md does not contain the markers ${START_MARKER} and ${END_MARKER}. Restore them and run again.`,
    )
  await writeFile(README_URL, `${head}${START_MARKER}\n\n${results}\n${END_MARKER}${tail}`)
}
