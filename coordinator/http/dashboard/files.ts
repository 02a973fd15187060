// The files of the dashboard. In a checkout they are built beside the start of the coordinator; the npm package contains them.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { Logger } from 'pino'
import type { BundleFile } from '../../base/bundle-cache.ts'
import { buildDashboard, DESIGN_START, ENCODINGS } from './build.ts'

/** The directory of the npm package with the files that `npm run package` has built. */
export const PREBUILT_DIR = 'dashboard/prebuilt'
/** Caches of the build. The second one is for a project that this user cannot write to. */
const PROJECT_CACHE = 'node_modules/.cache/boxwood/dashboard'
const DATA_CACHE = 'dashboard-bundle'
/** After a failed build, requests fail with the same reason for this long. */
const FAILURE_MS = 10_000

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.woff2': 'font/woff2',
}

export type DashboardFile = { type: string; bytes: Buffer; br: Buffer; gzip: Buffer }
export type DashboardFiles = {
  byName: ReadonlyMap<string, DashboardFile>
  /** The names of the files that the page loads. */
  script: string
  style: string
  /** The script of the page of the components. Null: the npm package does not have it. */
  design: string | null
  /** Of the text of the pages. */
  font: string
  /** Identifies the content of all files. */
  buildId: string
}

export type Dashboard = {
  /** Builds the files in the background, so that the first request does not wait. */
  prepare(): void
  /** Waits for a build in progress. Rejects with the reason when the build has failed. */
  get(): Promise<DashboardFiles>
  /** Waits for a build in progress. */
  close(): Promise<void>
}

export type DashboardOptions = {
  projectRoot: string
  dataDir: string
  log: Pick<Logger, 'info' | 'warn'>
}

export function createDashboard({ projectRoot, dataDir, log }: DashboardOptions): Dashboard {
  let loading: Promise<DashboardFiles> | undefined

  async function load(): Promise<DashboardFiles> {
    const startedAt = performance.now()
    const prebuilt = await readPrebuilt(join(projectRoot, PREBUILT_DIR))
    if (prebuilt !== null) return indexFiles(prebuilt)
    const cacheFiles = [join(projectRoot, PROJECT_CACHE), join(dataDir, DATA_CACHE)]
    const files = indexFiles(await buildDashboard(projectRoot, cacheFiles))
    const milliseconds = Math.round(performance.now() - startedAt)
    log.info({ buildId: files.buildId, milliseconds }, 'the dashboard is ready')
    return files
  }

  function get(): Promise<DashboardFiles> {
    if (loading === undefined) {
      loading = load()
      loading.catch((err: unknown) => {
        log.warn({ err }, 'failed to build the dashboard; a request for a page tries again')
        setTimeout(() => {
          loading = undefined
        }, FAILURE_MS).unref()
      })
    }
    return loading
  }

  return {
    prepare: () => void get().catch(() => undefined),
    get,
    async close() {
      await Promise.allSettled([loading])
    },
  }
}

/** Null: this is not the npm package. */
async function readPrebuilt(dir: string): Promise<BundleFile[] | null> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (names === null) return null
  return Promise.all(names.sort().map(async (name) => ({ name, bytes: await readFile(join(dir, name)) })))
}

function indexFiles(files: readonly BundleFile[]): DashboardFiles {
  const bytes = new Map(files.map((file) => [file.name, Buffer.from(file.bytes)]))
  const byName = new Map<string, DashboardFile>()
  for (const [name, plain] of bytes) {
    const type = TYPES[extname(name)]
    const br = bytes.get(name + ENCODINGS.br)
    const gzip = bytes.get(name + ENCODINGS.gzip)
    if (type !== undefined && br && gzip) byName.set(name, { type, bytes: plain, br, gzip })
  }
  const names = [...byName.keys()].sort()
  const find = (start: string) => {
    const name = names.find((other) => other.startsWith(start))
    if (name === undefined) throw new Error(`The dashboard has no file ${start}*.`)
    return name
  }
  // The names contain hashes of the content.
  const buildId = createHash('sha256').update(names.join('\n')).digest('base64url').slice(0, 22)
  return {
    byName,
    script: find('app-'),
    style: find('style-'),
    design: names.find((name) => name.startsWith(DESIGN_START)) ?? null,
    font: find('inter-'),
    buildId,
  }
}
