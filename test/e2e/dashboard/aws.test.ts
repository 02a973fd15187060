// The page of the AWS roles in a real browser, with an STS: what each action did is checked with the API.
import type { Page } from 'playwright-core'
import t from 'tap'
import { formatTrustPolicy } from '../../../cli/federation/trust-policy.ts'
import { ISSUER } from '../../support/aws-roles.ts'
import { NO_BROWSER } from '../../support/browser.ts'
import { openDashboard } from '../../support/dashboard.ts'
import { startFakeSts } from '../../support/fake-sts.ts'
import { createTestSession } from '../../support/session.ts'
import { createTrustPolicy } from '../../support/sts/trust-policy.ts'
import { ACCOUNT, AUDIENCE, toRoleArn } from '../federation/support.ts'

const row = (page: Page, name: string) => page.getByRole('row', { name: new RegExp(`^${name} `) })
const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).click()
/** Submits the open dialog, and waits until it has closed. */
async function submit(page: Page, label: string): Promise<void> {
  await page.getByRole('dialog').getByRole('button', { name: label, exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

t.test('AWS roles', { skip: NO_BROWSER }, async (t) => {
  let url = ''
  const sts = await startFakeSts(t, {
    issuer: ISSUER,
    now: Date.now,
    readDocument: async (path) => (await fetch(`${url}/oidc${path}`)).json(),
  })
  const dashboard = await openDashboard(t, () => '/workspace/aws', {
    env: {
      BOXWOOD_PUBLIC_URL: 'https://boxes.example.com',
      BOXWOOD_OIDC_ISSUER: ISSUER,
      BOXWOOD_AWS_TEMPLATE_URL: 'https://templates.s3.amazonaws.com/boxwood-role.yaml',
      AWS_ENDPOINT_URL_STS: sts.url,
      AWS_REGION: 'eu-central-1',
    },
  })
  url = dashboard.url
  const { api, page, problems } = dashboard
  const context = page.context()
  const dialog = page.getByRole('dialog')
  const command = dialog.locator('.command code')
  const owner = await createTestSession(dashboard)
  const load = async () => (await api('GET', '/aws-roles', undefined, owner)).json
  const { subjectPattern } = await load()
  const addRole = (name: string) =>
    sts.roles.set(
      toRoleArn(name),
      createTrustPolicy({ issuer: ISSUER, account: ACCOUNT, audience: AUDIENCE, subject: subjectPattern }),
    )
  /** What the stack of the link sends. */
  const callBack = (link: URL, name: string) => {
    const parameters = new URLSearchParams(link.hash.split('?')[1])
    const [id, token] = [parameters.get('param_ConnectId'), parameters.get('param_ConnectToken')]
    return api('POST', '/aws-connect/callback', { id, token, roleArn: toRoleArn(name) }, { key: null })
  }
  const panel = page.getByRole('region', { name: 'The link to AWS' })
  const createLink = async (profile: string) => {
    await press(page, 'Create a role in AWS')
    await page.getByLabel('Profile').fill(profile)
    t.equal(await command.textContent(), `box aws connect --as ${profile}`)
    await submit(page, 'Create the link')
    await panel.getByText('Waiting for the role, until').waitFor()
    return new URL((await panel.getByRole('link').getAttribute('href')) ?? '')
  }

  await t.test('connect a role that does not trust the workspace yet, and verify it', async (t) => {
    await page.getByText('No AWS role is connected.').waitFor()
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await press(page, 'Connect a role')
    await dialog.getByText('Trust policy of a role').click()
    await dialog.getByRole('button', { name: 'Copy: the trust policy' }).click()
    await dialog.getByText('Copied').waitFor()
    const facts = { issuer: ISSUER, audience: AUDIENCE, subjectPattern }
    t.equal(await page.evaluate('navigator.clipboard.readText()'), formatTrustPolicy(facts))
    t.equal(await dialog.locator('pre').textContent(), formatTrustPolicy(facts))
    await page.getByLabel('ARN of the role').fill('deploy')
    await dialog.getByRole('button', { name: 'Connect', exact: true }).click()
    await dialog.locator('.problem', { hasText: 'invalid_role_arn' }).waitFor()
    t.match(problems.splice(0), [/400/])

    await page.getByLabel('ARN of the role').fill(toRoleArn('deploy'))
    t.equal(await command.textContent(), `box aws connect ${toRoleArn('deploy')}`)
    await submit(page, 'Connect')
    await page.getByText('default is connected. AWS does not let the workspace assume the role').waitFor()
    await row(page, 'default').locator('.problem', { hasText: 'AccessDenied' }).waitFor()
    t.equal(
      await row(page, 'default').locator('pre').textContent(),
      formatTrustPolicy(facts, toRoleArn('deploy')),
    )
    t.match((await load()).roles, [{ roleArn: toRoleArn('deploy'), profile: 'default', verifiedAt: null }])

    addRole('deploy')
    await press(page, 'Verify default')
    t.equal(await command.textContent(), 'box aws verify default')
    await submit(page, 'Verify')
    const verifiedArn = `arn:aws:sts::${ACCOUNT}:assumed-role/deploy/boxwood-verify`
    await row(page, 'default').getByText(`as ${verifiedArn}`).waitFor()
    await page.getByText(`default: AWS has confirmed it as ${verifiedArn}.`).waitFor()
    t.match((await load()).roles, [{ verifiedArn, verifyError: null }])
  })

  await t.test('a refusal, another profile, and disconnect', async (t) => {
    addRole('audit')
    await press(page, 'Connect a role')
    await page.getByLabel('ARN of the role').fill(toRoleArn('audit'))
    await page.getByLabel('Profile').fill('default')
    await dialog.getByRole('button', { name: 'Connect', exact: true }).click()
    await dialog.locator('.problem', { hasText: 'profile_taken' }).waitFor()
    t.match(problems.splice(0), [/409/])
    await page.getByLabel('Profile').fill('audit')
    t.equal(await command.textContent(), `box aws connect ${toRoleArn('audit')} --as audit`)
    await submit(page, 'Connect')
    await row(page, 'audit').getByText('boxwood-verify').waitFor()
    await press(page, 'Disconnect audit')
    t.equal(await command.textContent(), 'box aws disconnect audit')
    await page.keyboard.press('Escape')
    t.equal((await load()).roles.length, 2, 'Escape changes nothing')
    await press(page, 'Disconnect audit')
    await submit(page, 'Disconnect')
    await row(page, 'audit').waitFor({ state: 'detached' })
    t.match((await load()).roles, [{ profile: 'default' }])
  })

  await t.test('a link opens the console in a new tab, and connects the role', async (t) => {
    await context.route(/console\.aws\.amazon\.com/, (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: '<script>document.title = String(opener) + document.referrer</script>',
      }),
    )
    const link = await createLink('stack')
    t.equal(link.host, 'eu-central-1.console.aws.amazon.com')
    const opened = context.waitForEvent('page')
    await panel.getByRole('link').click()
    const tab = await opened
    await tab.waitForLoadState()
    t.equal(await tab.title(), 'null', 'the tab knows neither the page nor its address')
    await tab.close()
    addRole('stack')
    t.same((await callBack(link, 'stack')).json, { connected: true, message: null })
    await press(page, 'Load again')
    await panel.getByText('Boxes use it as the profile stack.').waitFor()
    await row(page, 'stack').waitFor()
    await press(page, 'Hide')
    await panel.waitFor({ state: 'detached' })
  })

  await t.test('a link is cancelled', async (t) => {
    const link = await createLink('other')
    await press(page, 'Cancel the link')
    await page.getByText('The link was cancelled.').waitFor()
    await panel.waitFor({ state: 'detached' })
    t.equal((await callBack(link, 'stack')).status, 404)

    await createLink('other')
    await api('POST', '/aws-connect', {}, owner)
    await press(page, 'Cancel the link')
    await page.locator('.problem', { hasText: 'not_found' }).waitFor()
    await panel.waitFor({ state: 'detached' })
    t.match(problems.splice(0), [/404/])
  })

  await t.test('an expired link, and a deployment without links', async () => {
    await page.route('**/api/v1/aws-connect', (route) =>
      route.fulfill({ json: { id: 'awc_1', url: 'https://a.invalid/', expiresAt: '2020-01-01T00:00:00Z' } }),
    )
    await press(page, 'Create a role in AWS')
    await submit(page, 'Create the link')
    await panel.getByText('The link has expired.').waitFor()
    await panel.getByRole('link').waitFor({ state: 'detached' })
    await page.route('**/api/v1/aws-roles', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), quickConnect: false } })
    })
    await press(page, 'Load again')
    await page.getByText('This deployment has no link that creates a role.').waitFor()
    await page.getByRole('button', { name: 'Create a role in AWS' }).waitFor({ state: 'detached' })
  })

  t.same(problems, [], 'no violation of the policy and no error')
})
