// box share, unshare, shares, and open with a box.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { PortShare } from '../../shared/api/port-shares.ts'
import { createTestSession } from '../support/session.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { createVitals, startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum'])
const { api, findBox, instance, respondNext, waitForState } = coordinator
const fig = await findBox('fig')
const { id: plumId } = await findBox('plum')
await api('POST', `/boxes/${plumId}/suspend`)
await waitForState(plumId, 'suspended')
const NO_DISPLAY = { DISPLAY: '', WAYLAND_DISPLAY: '' }
const box = (...args: string[]) => runBox(coordinator, args, { env: NO_DISPLAY })
/** The agent of fig reports these ports. */
const listen = (...ports: [port: number, process: string | null][]) => {
  const { heartbeats } = instance.context
  heartbeats.record(fig.id, createVitals())
  heartbeats.recordPorts(
    fig.id,
    ports.map(([port, process]) => ({ port, process, pid: null })),
  )
}
const listShares = async (): Promise<PortShare[]> => (await api('GET', '/port-shares')).json.shares
const MEMBERS_URL = /^http:\/\/[\w-]+\.localhost:\d+\/\n$/

t.beforeEach(async () => {
  for (const { id } of await listShares()) await api('DELETE', `/port-shares/${id}`)
  listen([3000, 'node'])
})

t.test('share prints the address on stdout, and everything else on stderr', async (t) => {
  const { code, stdout, stderr } = await box('share', 'fig', '3000')
  t.equal(code, 0)
  t.match(stdout, MEMBERS_URL)
  t.match(stderr, /Members of the workspace who see fig may open it, until `box unshare`\./)
  t.match(stderr, /works only in browsers on this machine\..*box docs share-elsewhere/)
  t.match(stderr, /as you without signing in, once.*:\nhttp:\/\/[\w.]+:\d+\/share\/open\?slug=\S+&code=\S+\n/)
  t.notMatch(stderr, /Nothing listens/)
  t.match(await listShares(), [{ port: 3000, access: 'members' }])

  const again = await box('share', 'fig', '3000', '-q')
  t.same(again, { code: 0, stdout, stderr: '' }, 'the same link; -q prints only the address')
})

t.test('the options of a link', async (t) => {
  const anyone = await box('share', 'fig', '3000', '--anyone', '--expires', '2h', '--rewrite-host')
  t.match(anyone.stdout, /^http:\S+\/\?boxwood_secret=\S+\n$/)
  t.match(
    anyone.stderr,
    /Anyone who has the link may open it, until 2\S+ \d\d:\d\d:\d\d \(in 2h\)\. Its secret is shown only now\./,
  )
  t.notMatch(anyone.stderr, /code=/, 'a link with a secret needs no sign-in')
  t.match(await listShares(), [{ access: 'anyone', rewriteHost: true }])
  const open = await box('share', 'fig', '3000', '--access', 'public')
  t.match(open.stderr, /Everyone may open it, until .*\(in 7d\)/)
  t.match(open.stderr, /replaces the link for anyone, which does not work any more/)
  t.match(await listShares(), [{ access: 'public' }])
  const later = await box('share', 'fig', '3000', '--public', '--expires', '30d')
  t.match(later.stderr, /its expiry is unchanged\. --new replaces it/)
  const json = JSON.parse((await box('share', 'fig', '3000', '--members', '--json')).stdout)
  t.match(json, { share: { access: 'members' }, replaced: { access: 'public' } })
})

t.test('wrong usage', async (t) => {
  for (const [args, error] of [
    [['--expires', '1h'], /A link for members does not expire/],
    [['--expires', '1m', '--anyone'], /--expires must be a duration from 5m to 30d/],
    [['--anyone', '--public'], /cannot be used with/],
    [['--access', 'all'], /Allowed choices are members, anyone, public/],
  ] as const)
    t.match(await box('share', 'fig', '3000', ...args), { code: 2, stdout: '', stderr: error })
  t.match(await box('share', 'fig', '70000'), { code: 2, stderr: /The port must be .* 65535/ })
  t.match(await box('share', 'pear', '80'), { code: 5, stderr: /No such box: 'pear'/ })
  t.same(await listShares(), [])
})

t.test('the secret of an existing link is not known, and --new replaces the link', async (t) => {
  const first = await box('share', 'fig', '3000', '--anyone', '-q')
  const again = await box('share', 'fig', '3000')
  t.match(again, {
    code: 1,
    stdout: '',
    stderr: /shown only when the link was created\. `box share fig 3000 --new`.*box unshare fig 3000/,
  })
  const setting = await box('share', 'fig', '3000', '--rewrite-host')
  t.match(setting, {
    code: 0,
    stdout: '',
    stderr: /The link is the same\. The server gets `localhost:3000` as Host/,
  })
  const [before] = await listShares()
  const replaced = await box('share', 'fig', '3000', '--new')
  t.match(replaced.stdout, /\?boxwood_secret=/)
  t.not(replaced.stdout, first.stdout)
  t.match(replaced.stderr, /replaces the link for anyone/)
  const [link, ...others] = await listShares()
  t.match(link, { access: 'anyone', rewriteHost: true }, 'the audience and the setting stay')
  t.same(others, [])
  t.not(link?.id, before?.id)
})

t.test('--new keeps the link when the coordinator would refuse the new one', async (t) => {
  await box('share', 'fig', '3000')
  const session = await createTestSession(coordinator)
  const setLinks = (shareLinks: boolean) => api('PATCH', '/workspace/policies', { shareLinks }, session)
  t.equal((await setLinks(false)).status, 200)
  t.match(await box('share', 'fig', '3000', '--new', '--anyone'), {
    code: 1,
    stderr: /box policies set shareLinks on.*\(share_links_blocked\)/,
  })
  t.match(await listShares(), [{ access: 'members' }])
  t.equal((await setLinks(true)).status, 200)
})

t.test('notes on the server', async (t) => {
  listen()
  t.match((await box('share', 'fig', '3000')).stderr, /Nothing listens on port 3000 of fig yet/)
  t.match((await box('share', 'plum', '3000')).stderr, /plum is suspended\. The page of the link wakes it/)
  t.match((await box('share', 'plum', '80', '--public')).stderr, /plum is suspended: .*box wake plum/)
})

t.test('without a port: the only one, else the ports', async (t) => {
  t.match(await box('share', 'fig', '-q'), { code: 0, stdout: MEMBERS_URL })
  listen([3000, 'node'], [5432, 'postgres\u001b[2J'])
  t.match(await box('share', 'fig'), {
    code: 2,
    stdout: '',
    stderr:
      /2 ports listen on fig\. Type one of:\n +`box share fig 3000` +node\n +`box share fig 5432` +postgres\uFFFD/,
  })
  listen()
  t.match(await box('share', 'fig'), { code: 2, stderr: /Nothing listens on fig\..*`box share fig 3000`/ })
  coordinator.changeNext(`GET /api/v1/boxes/${fig.id}/port-shares`, (body) => ({ ...body, listening: null }))
  t.match(await box('share', 'fig'), { code: 2, stderr: /not known\. Type the port: `box share fig 3000`/ })
})

t.test('each refusal gets what to do', async (t) => {
  const hints: [code: string, status: number, args: string[], hint: RegExp][] = [
    ['port_share_disabled', 503, [], /BOXWOOD_SHARES .*`box forward fig 3000`/],
    ['share_links_disabled', 503, ['--anyone'], /BOXWOOD_SHARE_LINKS .*`box share fig 3000`/],
    ['share_links_blocked', 403, ['--public'], /`box policies set shareLinks on`/],
    ['share_links_need_payment', 402, ['--anyone'], /`box share fig 3000` shares it with the members/],
    ['policy_denied', 403, ['--anyone'], /`box policies set anyoneLinksOwnerOnly off`/],
    ['not_allowed', 403, ['--public'], /`box share fig 3000` shares it with the members/],
    ['share_link_limit', 409, ['--anyone'], /`box shares --filter access=anyone .*`box unshare NAME PORT`/],
  ]
  for (const [code, status, args, hint] of hints) {
    respondNext(`POST /api/v1/boxes/${fig.id}/port-shares`, status, { error: code, message: 'Refused.' })
    const result = await box('share', 'fig', '3000', ...args)
    t.match(result, { code: 1, stdout: '' }, code)
    t.match(result.stderr, new RegExp(`^box: Refused\\. .*${hint.source}.*\\(${code}\\)\n$`), code)
  }
})

t.test('--open and box open start the browser with the link that needs no sign-in', async (t) => {
  const dir = createTempDir(t, 'open')
  const opened = join(dir, 'opened')
  writeFileSync(join(dir, 'xdg-open'), `#!/bin/sh\necho "$1" >${opened}\n`, { mode: 0o755 })
  const env = { DISPLAY: ':0', PATH: `${dir}:/usr/bin:/bin` }
  for (const args of [
    ['share', 'fig', '3000', '--open'],
    ['open', 'fig', '3000'],
  ]) {
    writeFileSync(opened, '')
    const { code, stdout, stderr } = await runBox(coordinator, args, { env })
    t.match({ code, stdout }, { code: 0, stdout: MEMBERS_URL }, args.join(' '))
    t.notMatch(stderr, /code=/, 'the browser has used the link')
    t.match(readFileSync(opened, 'utf8'), /\/share\/open\?slug=\S+&code=\S+\n$/)
  }
  const noDisplay = await box('open', 'fig', '3000')
  t.match(noDisplay, { code: 0, stdout: MEMBERS_URL, stderr: /No display.*\n.*once.*\nhttp:\S+code=\S+\n/s })
  t.match(JSON.parse((await box('open', 'fig', '3000', '--json')).stdout), { url: /code=\S+$/ })
  await box('share', 'fig', '3000', '--public', '-q')
  await runBox(coordinator, ['open', 'fig', '3000'], { env })
  t.match(readFileSync(opened, 'utf8'), MEMBERS_URL, 'a public link is opened as it is')
})

t.test('shares lists the links', async (t) => {
  t.match(await box('shares'), { code: 0, stdout: '', stderr: /`box share NAME PORT` shares a port/ })
  await box('share', 'fig', '3000', '-q')
  await box('share', 'plum', '80', '--anyone', '-q')
  const [ofFig, ofPlum] = [
    (await listShares()).find(({ port }) => port === 3000),
    (await listShares()).find(({ port }) => port === 80),
  ]
  await instance.context.db
    .updateTable('port_shares')
    .set({ open_count: 3, last_opened_at: Date.now() })
    .where('id', '=', ofFig?.id ?? '')
    .execute()
  const { stdout } = await box('shares')
  t.match(stdout, /^NAME +PORT +ACCESS +URL +EXPIRES +OPENED\n/)
  t.match(stdout, /^fig +3000 +members +http:\S+localhost:\d+\/ +never +3 times, \d+s ago$/m)
  t.match(stdout, /^plum +80 +anyone +http:\S+\/\?boxwood_secret=… +in 7d +never$/m)
  t.equal((await box('shares', 'fig', '-q')).stdout, `${ofFig?.id}\n`)
  t.equal((await box('shares', '-q', '--filter', 'access=anyone')).stdout, `${ofPlum?.id}\n`)
  t.match(JSON.parse((await box('shares', '--json', '--filter', 'port=80')).stdout), {
    enabled: true,
    shares: [{ port: 80 }],
  })
})

t.test('unshare finds a link by box and port, address, host name, slug and id', async (t) => {
  const ways: ((link: { id: string; slug: string; origin: string }) => string[])[] = [
    () => ['fig', '3000'],
    () => ['fig'],
    () => [fig.id, '3000'],
    ({ origin }) => [`${origin}/path?boxwood_secret=x`],
    ({ origin }) => [new URL(origin).host],
    ({ slug }) => [slug],
    ({ id }) => [id],
    ({ id }) => [id.slice(0, 16)],
  ]
  for (const getArgs of ways) {
    await box('share', 'fig', '3000', '-q')
    const [link] = await listShares()
    const args = getArgs(link as NonNullable<typeof link>)
    t.match(
      await box('unshare', ...args),
      { code: 0, stderr: 'fig 3000: the link is ended\n' },
      args.join(' '),
    )
    t.same(await listShares(), [])
  }
  t.match(await box('unshare', 'fig', '3000'), { code: 5, stderr: /Port 3000 of fig is not shared/ })
  t.match(await box('unshare', 'fig'), { code: 5, stderr: /No port of fig is shared/ })
  t.match(await box('unshare', 'http://x.localhost/'), { code: 5, stderr: /No such link/ })
  t.match(await box('unshare', 'pear', '80'), { code: 5, stderr: /No such box: 'pear'/ })
  t.match(await box('unshare'), { code: 2, stderr: /box unshare NAME PORT/ })
})

t.test('unshare with several links, and --all', async (t) => {
  for (const [name, port] of [
    ['fig', '3000'],
    ['fig', '80'],
    ['plum', '80'],
  ] as const)
    await box('share', name, port, '-q')
  t.match(await box('unshare', 'fig'), {
    code: 2,
    stderr:
      /fig has 2 links\. Type one of:\n +`box unshare fig 3000`\n +`box unshare fig 80`\n +`box unshare fig --all`/,
  })
  t.match(await box('unshare', 'fig', '--all'), { code: 0, stderr: /fig 3000: .*\nfig 80: / })
  t.match(await listShares(), [{ hostname: 'plum' }])
  const pty = runBoxInPty(t, coordinator, '$BOX unshare --all')
  await pty.waitFor(/End the links of plum 80\? \[y\/N\]/)
  pty.type('n\r')
  t.match(await pty.waitForExit(), { exitCode: 1 })
  t.equal((await listShares()).length, 1)
  t.match(JSON.parse((await box('unshare', '--all', '--json')).stdout), { port: 80, revoked: true })
  t.match(await box('unshare', '--all'), { code: 0, stderr: 'No ports are shared.\n' })
})
