// A real box that runs web applications, and links to its ports.

import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import type { Test } from 'tap'
import type { CreatePortShareRequest, PortAudience, PortShare } from '../../../shared/api/port-shares.ts'
import { SESSION_COOKIE } from '../../../shared/session-cookie.ts'
import type { CoordinatorOptions, TestCoordinator } from '../../support/coordinator.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import { PROJECT_DIR } from '../../support/project.ts'
import { createTestSession } from '../../support/session.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from '../coordinator-with-box.ts'

export const AUDIENCES: readonly PortAudience[] = ['members', 'anyone', 'public']
const FIXTURES = join(PROJECT_DIR, 'test/fixtures/web-apps')
const APP = join(FIXTURES, 'app.ts')
/** Adds functions to each page. */
const PAGE_FUNCTIONS = join(FIXTURES, 'page.js')

/** The Node of the agent in a box with a view of its own, else that of the test. */
const NODE = `$(command -v /run/boxwood/bin/node || echo '${process.execPath}')`

export type SharingBox = Awaited<ReturnType<typeof startSharingBox>>
/** Its URL is that of the response that created it. */
export type OpenShare = PortShare & { url: string }

export async function startSharingBox(t: Test, { env, ...options }: CoordinatorOptions = {}) {
  const coordinator = await startCoordinatorWithBox(t, {
    ...options,
    env: { ...limitsEnv(HIGH_EDGE_LIMITS), ...env },
  })
  const { box, api, exec, boxRequest } = coordinator
  const publicUrl = env?.BOXWOOD_PUBLIC_URL ?? coordinator.url

  async function run(command: string): Promise<string> {
    const { exitCode, stdout, stderr } = await exec(command, { timeoutSeconds: 60 })
    if (exitCode !== 0) throw new Error(`${command}: ${stderr}`)
    return String(stdout)
  }
  const listPorts = async (): Promise<number[]> => {
    const { json } = await api('GET', `/boxes/${box.id}/port-shares`)
    return (json.listening?.ports ?? []).map(({ port }: { port: number }) => port)
  }

  return {
    ...coordinator,
    run,
    async writeFile(path: string, content: string): Promise<void> {
      const { status } = await boxRequest('PUT', '/files', { path, content })
      if (status !== 200) throw new Error(`${path}: ${status}`)
    },
    /** Starts a server, and resolves with the port on which it listens. `$NODE` in the command is a Node. */
    async startServer(command: string): Promise<number> {
      const before = await listPorts()
      const { status, json } = await boxRequest('POST', '/exec', {
        command: `NODE=${NODE}; ${command}`,
        detached: true,
      })
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(json)}`)
      const find = async () => (await listPorts()).find((port) => !before.includes(port))
      return waitUntil(`a process listens: ${command}`, find).catch(async (error: Error) => {
        const { json: output } = await boxRequest('GET', `/exec/${json.processId}`)
        throw new Error(`${error.message}: ${JSON.stringify(output)}`)
      })
    },
    /** Starts the application of test/fixtures/web-apps/app.ts in a directory. Returns its port. */
    async startApp(dir = 'app'): Promise<number> {
      const { outputFiles } = await build({
        entryPoints: [APP],
        bundle: true,
        platform: 'node',
        external: ['bufferutil', 'utf-8-validate'],
        write: false,
        logLevel: 'silent',
      })
      await run(`mkdir -p ${dir}/public`)
      await this.writeFile(`${dir}/app.cjs`, outputFiles[0]?.text ?? '')
      return this.startServer(`cd ${dir}; exec "$NODE" app.cjs 2>errors.log`)
    },
    /** Creates a link; a link of the port for another audience is replaced. */
    async share(body: CreatePortShareRequest): Promise<OpenShare> {
      const { status, json } = await api('POST', `/boxes/${box.id}/port-shares`, body)
      if (status !== 201) throw new Error(`${status} ${JSON.stringify(json)}`)
      return json.share
    },
    async unshare({ id }: PortShare): Promise<void> {
      const { status, json } = await api('DELETE', `/port-shares/${id}`)
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(json)}`)
    },
    /** The requests that the application has received. */
    readRequests: async (dir = 'app'): Promise<string[]> =>
      (await run(`cat ${dir}/requests.log 2>/dev/null || true`)).split('\n').slice(0, -1),
    /** Opens a link as one of its audience does: a member is signed in at the coordinator. */
    async openPage(
      browser: Browser,
      share: OpenShare,
      { navigate = (page) => page.goto(share.url), ...options }: OpenPageOptions = {},
    ): Promise<Page> {
      const context = await browser.newContext(options)
      if (share.access === 'members') await addSession(context, coordinator, publicUrl)
      await context.addInitScript({ path: PAGE_FUNCTIONS })
      const page = await context.newPage()
      await navigate(page)
      return page
    },
  }
}

type OpenPageOptions = BrowserContextOptions & { navigate?: (page: Page) => Promise<unknown> }

/** Signs the owner in. @param url the origin of the coordinator */
async function addSession(context: BrowserContext, coordinator: TestCoordinator, url: string): Promise<void> {
  const { cookie = '' } = (await createTestSession(coordinator)).headers ?? {}
  const value = cookie.slice(SESSION_COOKIE.length + 1)
  const flags = { httpOnly: true, secure: true, sameSite: 'Lax' } as const
  await context.addCookies([{ name: SESSION_COOKIE, value, url: url.replace('http:', 'https:'), ...flags }])
}

/** Sends a request to a link without a browser. @param url of the link; its host name is not resolved */
export async function requestShare(
  coordinatorUrl: string,
  url: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: IncomingMessage['headers']; text: string }> {
  const { hostname, port } = new URL(coordinatorUrl)
  const { host, pathname, search } = new URL(url)
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    httpRequest({ hostname, port, path: pathname + search, headers: { host, ...headers }, agent: false })
      .on('response', resolve)
      .on('upgrade', (upgraded, socket) => {
        socket.destroy()
        resolve(upgraded)
      })
      .on('error', reject)
      .end()
  })
  const text = response.complete ? '' : Buffer.concat(await response.toArray()).toString()
  return { status: response.statusCode ?? 0, headers: response.headers, text }
}
