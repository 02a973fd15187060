// install/aws/boxwood-role.yaml: the shapes of its resources, the trust policy, and the function that reports the role.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import t from 'tap'
import { parse, type Tags } from 'yaml'
import { formatTrustPolicy } from '../../cli/federation/trust-policy.ts'
import { createQuickCreateUrl } from '../../coordinator/federation/aws/quick-create.ts'
import { PROJECT_DIR } from '../support/project.ts'

type Value = string | number | boolean | Value[] | { [key: string]: Value }
type Resource = {
  Type: string
  Properties: Record<string, Value>
  Condition?: string
  DependsOn?: string
  DeletionPolicy?: string
  UpdateReplacePolicy?: string
}
type Template = {
  AWSTemplateFormatVersion: string
  Parameters: Record<string, Record<string, Value>>
  Conditions: Record<string, Value>
  Resources: Record<string, Resource>
  Outputs: Record<string, { Value: Value }>
}

/** The short forms of functions, as CloudFormation reads them: `!Ref a` is {Ref: a}. */
const TAGS: Tags = ['Ref', 'Sub', 'GetAtt', 'Select', 'Split', 'Equals'].flatMap((name) => {
  const key = name === 'Ref' ? name : `Fn::${name}`
  return [
    { tag: `!${name}`, resolve: (text: string) => ({ [key]: text }) },
    {
      tag: `!${name}`,
      collection: 'seq' as const,
      resolve: (items: { toJSON(): Value }) => ({ [key]: items.toJSON() }),
    },
  ]
}) as Tags

const text = readFileSync(join(PROJECT_DIR, 'install/aws/boxwood-role.yaml'), 'utf8')
const template: Template = parse(text, { customTags: TAGS })

const getProperties = (name: string): Record<string, Value> => template.Resources[name]?.Properties ?? {}

/**
 * The resource types that the template uses, of CloudFormation's resource specification: the required properties, the optional
 * ones that are used, and the attributes.
 */
const SHAPES: Record<string, { required: string[]; optional: string[]; attributes: string[] }> = {
  'AWS::IAM::OIDCProvider': {
    required: [],
    optional: ['Url', 'ClientIdList', 'ThumbprintList', 'Tags'],
    attributes: ['Arn'],
  },
  'AWS::IAM::Role': {
    required: ['AssumeRolePolicyDocument'],
    optional: [
      'Description',
      'ManagedPolicyArns',
      'MaxSessionDuration',
      'Path',
      'PermissionsBoundary',
      'Policies',
      'RoleName',
      'Tags',
    ],
    attributes: ['Arn', 'RoleId'],
  },
  'AWS::Lambda::Function': {
    required: ['Code', 'Role'],
    optional: ['Description', 'Runtime', 'Handler', 'Timeout', 'MemorySize', 'Environment'],
    attributes: ['Arn'],
  },
  // Other properties are passed to the function.
  'AWS::CloudFormation::CustomResource': { required: ['ServiceToken'], optional: [], attributes: [] },
}

/** All functions of the template, with what they refer to. */
function listReferences(value: Value | undefined): string[] {
  if (Array.isArray(value)) return value.flatMap(listReferences)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, argument]) => {
    if (key === 'Ref') return [String(argument)]
    if (key === 'Fn::GetAtt') return [String(argument)]
    if (key !== 'Fn::Sub') return listReferences(argument)
    const [pattern, variables = {}] = Array.isArray(argument) ? argument : [argument]
    const own = Object.keys(variables as object)
    const names = [...String(pattern).matchAll(/\$\{([^}]+)\}/g)].map(([, name = '']) => name)
    return [...names.filter((name) => !own.includes(name)), ...listReferences(variables)]
  })
}

t.test('the resources have the shapes of their types', async (t) => {
  t.equal(template.AWSTemplateFormatVersion, '2010-09-09')
  for (const [name, resource] of Object.entries(template.Resources)) {
    t.match(name, /^[A-Za-z0-9]+$/)
    const shape = SHAPES[resource.Type]
    if (shape === undefined) throw new Error(`${name} has the unknown type ${resource.Type}`)
    const used = Object.keys(resource.Properties)
    t.same(
      shape.required.filter((property) => !used.includes(property)),
      [],
      `${name} has what is required`,
    )
    if (resource.Type !== 'AWS::CloudFormation::CustomResource')
      t.same(
        used.filter((property) => ![...shape.required, ...shape.optional].includes(property)),
        [],
        name,
      )
    if (resource.Condition !== undefined) t.ok(template.Conditions[resource.Condition], name)
    if (resource.DependsOn !== undefined) t.ok(template.Resources[resource.DependsOn], name)
  }
  for (const [name, parameter] of Object.entries(template.Parameters))
    t.ok(['String', 'CommaDelimitedList'].includes(String(parameter.Type)), name)
  t.equal(template.Parameters.ConnectToken?.NoEcho, true, 'the secret of the link is not shown')
  const properties = Object.values(template.Resources).map((resource) => resource.Properties)
  const outputs = Object.values(template.Outputs).map(({ Value: value }) => value)
  for (const reference of listReferences([...properties, ...outputs, template.Conditions] as Value)) {
    const [target = '', attribute] = reference.split('.')
    if (target.startsWith('AWS::')) continue
    const resource = template.Resources[target]
    if (attribute === undefined) t.ok(template.Parameters[target] ?? resource, reference)
    else t.ok(SHAPES[resource?.Type ?? '']?.attributes.includes(attribute), reference)
  }
})

const FACTS = {
  issuer: 'https://boxes.example.com/oidc',
  audience: 'sts.amazonaws.com',
  subjectPattern: 'workspace:ws_1:*',
}

t.test('the trust policy is the one of the guide: it pins the audience and the subject', async (t) => {
  const sub = (getProperties('Role').AssumeRolePolicyDocument as { 'Fn::Sub': [string, object] })['Fn::Sub']
  t.same(sub[1], { Provider: { 'Fn::Select': [1, { 'Fn::Split': ['https://', { Ref: 'Issuer' }] }] } })
  const values: Record<string, string> = {
    ...{ 'AWS::Partition': 'aws', 'AWS::AccountId': '123456789012', Provider: 'boxes.example.com/oidc' },
    ...{ Audience: FACTS.audience, SubjectPattern: FACTS.subjectPattern },
  }
  const policy = JSON.parse(sub[0].replace(/\$\{([^}]+)\}/g, (_match, name: string) => values[name] ?? '?'))
  t.same(policy, JSON.parse(formatTrustPolicy(FACTS, 'arn:aws:iam::123456789012:role/a')))
})

t.test('a link fills in every parameter without a default', async (t) => {
  const needed = Object.entries(template.Parameters)
    .filter(([, parameter]) => parameter.Default === undefined)
    .map(([name]) => name)
  const given = {
    ...{
      Issuer: FACTS.issuer,
      SubjectPattern: FACTS.subjectPattern,
      CallbackUrl: 'https://boxes.example.com/x',
    },
    ...{ ConnectId: 'awc_1', ConnectToken: 'secret' },
  }
  t.same(Object.keys(given).sort(), needed.sort())
  const url = createQuickCreateUrl({
    templateUrl: 'https://s3',
    region: null,
    stackName: 'a',
    parameters: given,
  })
  for (const name of needed) t.match(url, `param_${name}=`)
  for (const [name, value] of Object.entries(given)) {
    const pattern = template.Parameters[name]?.AllowedPattern
    if (pattern !== undefined) t.match(value, new RegExp(String(pattern)), name)
  }
})

t.test('a link opens the console of its partition', async (t) => {
  const open = (region: string | null) =>
    new URL(createQuickCreateUrl({ templateUrl: 'https://s3', region, stackName: 'a', parameters: {} })).host
  t.equal(open(null), 'us-east-1.console.aws.amazon.com')
  t.equal(open('eu-central-1'), 'eu-central-1.console.aws.amazon.com')
  t.equal(open('cn-north-1'), 'cn-north-1.console.amazonaws.cn')
  t.equal(open('us-gov-west-1'), 'us-gov-west-1.console.amazonaws-us-gov.com')
})

type Sent = { url: string; body: Record<string, unknown> }
type Handler = (event: object) => Promise<void>

/** The function of the stack, with these responses of the coordinator. */
function loadFunction(responses: (() => [status: number, body: object])[]) {
  const sent: Sent[] = []
  const fetch = async (url: string, { body }: { body: string }) => {
    sent.push({ url, body: JSON.parse(body) })
    if (url === 'https://s3/response') return new Response('')
    const [status, json] = responses.shift()?.() ?? [404, {}]
    return Response.json(json, { status })
  }
  const exports: { handler?: Handler } = {}
  let now = 0
  const clock = { now: () => now }
  const setTimeout = (run: () => void, ms: number) => {
    now += ms
    run()
  }
  const code = (getProperties('ReportFunction').Code as { ZipFile: string }).ZipFile
  runInContext(code, createContext({ exports, fetch, setTimeout, AbortSignal, Date: clock }))
  const run = async (type: string) => {
    await exports.handler?.({
      ...{ RequestType: type, ResponseURL: 'https://s3/response', StackId: 's', RequestId: 'r' },
      LogicalResourceId: 'Connection',
      ResourceProperties: {
        ...{ CallbackUrl: 'https://boxes.example.com/x', ConnectId: 'awc_1', ConnectToken: 'secret' },
        RoleArn: 'arn:aws:iam::123456789012:role/a',
      },
    })
    return sent
  }
  return { run, now: clock.now, advance: (ms: number) => setTimeout(() => undefined, ms) }
}

t.test('the function reports the role until the workspace can assume it', async (t) => {
  const { run } = loadFunction([
    () => [200, { connected: false, message: 'AccessDenied' }],
    () => {
      throw new Error('the network failed')
    },
    () => [429, { error: 'rate_limited', message: 'later' }],
    () => [200, { connected: true, message: null }],
  ])
  const sent = await run('Create')
  const report = { id: 'awc_1', token: 'secret', roleArn: 'arn:aws:iam::123456789012:role/a' }
  t.same(
    sent.slice(0, -1),
    Array(4).fill({ url: 'https://boxes.example.com/x', body: report }),
    'until it is connected',
  )
  t.same(sent.at(-1)?.body, {
    ...{ Status: 'SUCCESS', Reason: 'connected', PhysicalResourceId: 'awc_1', StackId: 's', RequestId: 'r' },
    LogicalResourceId: 'Connection',
  })
})

t.test('the stack fails before the timeout of the function when Boxwood does not respond', async (t) => {
  const { run, now, advance } = loadFunction(
    Array(20).fill(() => {
      advance(30_000)
      throw new Error('The operation was aborted due to timeout')
    }),
  )
  t.match((await run('Create')).at(-1)?.body, { Status: 'FAILED', Reason: /timeout/ })
  t.ok(now() < 1000 * Number(getProperties('ReportFunction').Timeout) - 10_000, String(now()))
})

t.test('the stack fails with the reason, and its deletion reports nothing', async (t) => {
  const refused = await loadFunction([
    () => [404, { error: 'not_found', message: 'The link has expired.' }],
  ]).run('Create')
  t.equal(refused.length, 2, 'a final answer is not repeated')
  t.match(refused[1]?.body, { Status: 'FAILED', Reason: 'The link has expired.' })
  const deleted = await loadFunction([]).run('Delete')
  t.match(deleted, [{ url: 'https://s3/response', body: { Status: 'SUCCESS' } }])
  t.equal(deleted.length, 1)
  t.ok(text.length < 51_200, 'CloudFormation accepts it')
})
