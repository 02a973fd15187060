// Entry point of setup.mjs, which install.sh runs: install, start, uninstall and status.
import { dirname } from 'node:path'
import { createProxySelector } from '../tunnel/proxy.ts'
import { install } from './install.ts'
import { readRecord } from './install-record.ts'
import { getLayout } from './layout.ts'
import { readOptions } from './options.ts'
import { createService } from './services/choose-service.ts'
import { SetupError } from './setup-error.ts'
import { uninstall } from './uninstall.ts'

const print = (line: string): void => void process.stdout.write(`${line}\n`)

/** setup.mjs is in `<prefix>/versions/<build>`. */
const defaultPrefix = dirname(dirname(import.meta.dirname))

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2), defaultPrefix)
  // The token must not be in the environment of the agent.
  const env = { ...process.env }
  delete process.env.BOXWOOD_TOKEN
  switch (options.command) {
    case 'install':
      return install(options, { selectProxy: await createProxySelector(), env, print })
    case 'start':
      return start(options.prefix)
    case 'uninstall':
      return uninstall(options.prefix, print)
    case 'status':
      return printStatus(options.prefix)
  }
}

async function start(prefix: string): Promise<void> {
  const layout = getLayout(prefix)
  const { service } = await getRecord(prefix)
  await createService(service, layout).start()
}

async function printStatus(prefix: string): Promise<void> {
  const { name } = await getRecord(prefix)
  print(`This machine is the box ${name}.`)
}

async function getRecord(prefix: string) {
  const record = await readRecord(getLayout(prefix).recordFile)
  if (record === null)
    throw new SetupError(`There is no agent in ${prefix}. Pass its directory with --prefix.`)
  return record
}

main().catch((error: unknown) => {
  const text = error instanceof SetupError ? error.message : error instanceof Error ? error.stack : error
  process.stderr.write(`boxwood: ${text}\n`)
  process.exitCode = 1
})
