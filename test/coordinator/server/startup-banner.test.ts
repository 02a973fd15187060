// The command and the paths in the startup banner, for the directory from which the user has started the coordinator.
import { mkdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { createDashboardLink } from '../../../coordinator/server/dashboard-link.ts'
import { createStartupBanner } from '../../../coordinator/server/startup-banner.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { PROJECT_DIR } from '../../support/project.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const root = createTempDir(t, 'banner')
const box = join(PROJECT_DIR, 'box')
const { instance: coordinator } = await startTestCoordinator(t, { dataDir: join(root, 'with space/data') })

function setPath(t: { teardown(callback: () => void): void }, path: string): void {
  const before = process.env.PATH
  process.env.PATH = path
  t.teardown(() => {
    process.env.PATH = before
  })
}

t.test('box is not on the PATH: prints a path that works in the directory', async (t) => {
  setPath(t, '/usr/bin:/bin')
  t.match(
    await createStartupBanner(coordinator, resolve(PROJECT_DIR)),
    `in this directory:\n  BOXWOOD_DATA='${root}/with space/data' ./box exec `,
  )
  const banner = await createStartupBanner(coordinator, root)
  t.match(banner, `in this directory:\n  BOXWOOD_DATA='with space/data' ${box} exec `)
  t.match(banner, 'key is in with space/data/owner.key.\n')
  t.match(await createStartupBanner(coordinator, '/'), `key is in ${root}/with space/data/owner.key.\n`)
})

t.test('box is on the PATH: prints the name', async (t) => {
  const bin = join(root, 'bin')
  mkdirSync(bin)
  symlinkSync(box, join(bin, 'box'))
  setPath(t, bin)
  t.match(
    await createStartupBanner(coordinator, root),
    "in this directory:\n  BOXWOOD_DATA='with space/data' box exec ",
  )
})

t.test('has the link that signs the owner in, where browsers store a session', async (t) => {
  const link = (await createDashboardLink(coordinator)) ?? ''
  t.match(link, /^http:\/\/127\.0\.0\.1:\d+\/sign-in#bwl_[\w-]{43}$/)
  t.match(
    await createStartupBanner(coordinator, root, { link }),
    `Dashboard: ${link}\nThis link signs you in as the owner, once, within 15 minutes.`,
  )
  t.notMatch(await createStartupBanner(coordinator, root), 'Dashboard')
  const { context } = coordinator
  const createLink = async (publicUrl: string, listener: string, dashboard = true) => {
    const created = await createDashboardLink({
      context: {
        ...context,
        urls: { ...context.urls, public: publicUrl, listener },
        config: { ...context.config, dashboard },
      },
    })
    return created?.replace(/#.*/, '')
  }
  t.equal(await createLink('https://b.example', 'http://127.0.0.1:1'), 'https://b.example/sign-in')
  t.equal(await createLink('http://b.localhost:1', 'http://127.0.0.1:1'), 'http://b.localhost:1/sign-in')
  t.equal(await createLink('http://b.example', 'http://127.0.0.1:1'), 'http://127.0.0.1:1/sign-in')
  t.equal(await createLink('http://b.example', 'http://192.0.2.1:1'), undefined)
  t.equal(await createLink('https://b.example', 'http://127.0.0.1:1', false), undefined)
})

t.test('offers an engine as a region, with the line that starts it', async (t) => {
  const banner = await createStartupBanner(coordinator, root, {
    engines: [
      {
        kind: 'docker',
        address: 'unix:///var/run/docker.sock',
        source: null,
        status: 'running',
        version: '28.2.2',
        facts: ['rootful'],
        canFreeze: true,
        canResizeLive: true,
      },
    ],
  })
  t.match(
    banner,
    /Found Docker 28\.2\.2 .*stop Boxwood and start it with:\n {2}BOXWOOD_REGIONS=\S+=docker .*\n/,
  )
  t.notMatch(await createStartupBanner(coordinator, root), 'Docker')
})
