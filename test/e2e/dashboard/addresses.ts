// The addresses that the pages load and show behind a proxy: all have the path that it adds.
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard, signOut } from '../../support/dashboard.ts'

t.test('the addresses of the pages', { skip: NO_BROWSER }, async (t) => {
  const { url, box, page, problems } = await openDashboard(t, ({ hostname }) => `/boxes/${hostname}`, {
    machines: 'fake',
  })
  const loaded: string[] = []
  page.on('request', (request) => loaded.push(request.url()))
  page.on('websocket', (socket) => loaded.push(socket.url().replace(/^ws/, 'http')))
  const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()

  await t.test('the path without its slash, and another program of the host', async (t) => {
    const { origin } = new URL(url)
    await page.goto(url)
    await heading('Boxes')
    t.equal(page.url(), `${url}/`)
    t.equal(await (await fetch(`${origin}/`)).text(), 'another program')
    t.equal((await page.context().cookies()).length, 1)
    await page.goto(`${url}/boxes/${box.hostname}`)
  })

  await t.test('a page in a directory, and the links to other documents', async (t) => {
    await page.reload()
    await heading(box.hostname)
    await page.locator('.state.running').first().waitFor()
    const links: string[] = await page.evaluate("[...document.querySelectorAll('a')].map(({ href }) => href)")
    t.ok(links.includes(`${url}/`))
    t.ok(links.includes(`${url}/docs`))
    t.ok(links.includes(`${url}/desktop?box=${box.hostname}`))
    t.same(
      links.filter((link) => !link.startsWith(`${url}/`)),
      [],
    )
    await page.goto(`${url}/docs/`, { waitUntil: 'commit' })
    t.equal(page.url(), `${url}/docs`, 'a redirect')
    await page.goto(`${url}/desktop?box=${box.hostname}`)
    await page.getByRole('link', { name: 'Boxes' }).first().click()
    // The agent in memory has no desktop.
    t.ok(problems.splice(0).every((text) => text.includes('502')))
    await heading('Boxes')
    t.equal(page.url(), `${url}/`)
  })

  await t.test('the audit log as CSV', async (t) => {
    await page.goto(`${url}/workspace/audit`)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: /CSV/ }).click(),
    ])
    t.match(await readFile(await download.path(), 'utf8'), 'session.sign_in')
  })

  await t.test('the line for a machine', async (t) => {
    await page.goto(`${url}/workspace/machines`)
    await page.getByRole('button', { name: 'Add a machine' }).click()
    await page.getByRole('dialog').locator('button[type=submit], button.primary').click()
    const line = page.getByRole('region', { name: 'Join a machine' }).locator('code')
    t.match(await line.textContent(), `curl -fsSL ${url}/install.sh | sh`)
  })

  await t.test('sign out and in', async (t) => {
    await page.goto(`${url}/workspace/sessions`)
    await heading('Sessions')
    await signOut(page)
    await page.waitForURL(`${url}/sign-in`)
    t.same(await page.context().cookies(), [])
  })

  t.ok(loaded.includes(`${url}/api/v1/feed?live=1`))
  t.same(
    loaded.filter((address) => !`${address}/`.startsWith(`${url}/`) && !/^(data|blob):/.test(address)),
    [],
  )
  t.same(
    problems.filter((text) => !text.includes('401')),
    [],
    'no violation of the policy and no error',
  )
})
