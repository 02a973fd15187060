// The dashboard, the alert rules and the documentation use only metrics and labels that a coordinator has.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parser } from '@prometheus-io/lezer-promql'
import t from 'tap'
import { parse as parseYaml } from 'yaml'
import { startTestCoordinator } from '../../../support/coordinator.ts'
import { PROJECT_DIR } from '../../../support/project.ts'
import { requires } from '../../../support/requires.ts'
import { listMetricDefinitions } from './metric-definitions.ts'

const DASHBOARD = join(PROJECT_DIR, 'install/monitoring/grafana-dashboard.json')
const ALERTS = join(PROJECT_DIR, 'install/monitoring/prometheus-alerts.yaml')
const LISTEN = { BOXWOOD_METRICS_LISTEN: '127.0.0.1:0' }

/** Prometheus adds these labels to all series of a target. */
const TARGET_LABELS = ['job', 'instance']

type Panel = {
  title: string
  type: string
  targets?: { expr: string; datasource: { uid: string } }[]
  fieldConfig?: { defaults: { unit?: string } }
}
type Rule = { alert: string; expr: string; labels: { severity: string }; annotations: Record<string, string> }

const dashboard = JSON.parse(readFileSync(DASHBOARD, 'utf8'))
const panels: Panel[] = dashboard.panels
const rules: Rule[] = parseYaml(readFileSync(ALERTS, 'utf8')).groups.flatMap(
  (group: { rules: Rule[] }) => group.rules,
)

/** All series → their labels. A histogram has three series. */
async function listSeries(): Promise<Map<string, readonly string[]>> {
  const series = new Map<string, readonly string[]>([['up', TARGET_LABELS]])
  for (const { name, type, labels } of await listMetricDefinitions()) {
    const allLabels = [...TARGET_LABELS, ...labels]
    if (type !== 'histogram') series.set(name, allLabels)
    else {
      series.set(`${name}_bucket`, [...allLabels, 'le'])
      for (const suffix of ['_sum', '_count']) series.set(name + suffix, allLabels)
    }
  }
  return series
}

/** The syntax errors, the metrics, the labels that select series and the labels that group them. */
function inspectExpression(expression: string) {
  const errors: string[] = []
  const selectors: { metric: string; labels: string[]; aggregation: string | undefined }[] = []
  /** The operators of the aggregations around the current node, the innermost last. */
  const aggregations: string[] = []
  const groupingLabels: string[] = []
  let isGrouping = false
  parser.parse(expression).iterate({
    enter({ name, type, from, to }) {
      const text = expression.slice(from, to)
      if (type.isError) errors.push(`syntax error at ${from}: ${expression.slice(from)}`)
      if (name === 'VectorSelector')
        selectors.push({ metric: '', labels: [], aggregation: aggregations.at(-1) })
      if (name === 'AggregateExpr') aggregations.push(/^\w+/.exec(text)?.[0] ?? '')
      const selector = selectors.at(-1)
      if (name === 'Identifier' && selector) selector.metric = text
      if (name === 'GroupingLabels') isGrouping = true
      if (name !== 'LabelName') return
      if (isGrouping) groupingLabels.push(text)
      else selector?.labels.push(text)
    },
    leave({ name }) {
      if (name === 'AggregateExpr') aggregations.pop()
      if (name === 'GroupingLabels') isGrouping = false
    },
  })
  return { errors, selectors, groupingLabels }
}

/** What is wrong with the expression. */
function findProblems(expression: string, series: Map<string, readonly string[]>): string[] {
  const { errors, selectors, groupingLabels } = inspectExpression(expression)
  const problems = [...errors]
  if (selectors.length === 0) problems.push('no metric')
  for (const { metric, labels, aggregation } of selectors) {
    const known = series.get(metric)
    if (known?.includes('source') && aggregation !== 'max')
      problems.push(`${metric} is the same at all replicas: it needs max`)
    if (known === undefined) problems.push(`unknown metric ${metric}`)
    else
      problems.push(
        ...labels
          .filter((label) => !known.includes(label))
          .map((label) => `unknown label ${metric}.${label}`),
      )
  }
  const known = selectors.flatMap(({ metric }) => series.get(metric) ?? [])
  problems.push(
    ...groupingLabels.filter((label) => !known.includes(label)).map((label) => `unknown label ${label}`),
  )
  return problems
}

/** Replaces Grafana's variables by values. */
const replaceVariables = (expression: string): string =>
  expression.replaceAll('$__rate_interval', '5m').replaceAll('$instance', 'a:1')

t.test('the check of expressions finds errors', async (t) => {
  const series = await listSeries()
  for (const [expression, problem] of [
    ['sum(rate(boxwood_boxes[5m])', /syntax error/],
    ['boxwood_boxen', /unknown metric boxwood_boxen/],
    ['boxwood_boxes{stat="running"}', /unknown label boxwood_boxes.stat/],
    ['sum by (box) (boxwood_boxes)', /unknown label box/],
    ['boxwood_job_duration_seconds', /unknown metric/],
    ['sum(boxwood_boxes)', /boxwood_boxes is the same at all replicas: it needs max/],
    ['max(sum by (state) (boxwood_boxes))', /needs max/],
    ['1 + 1', /no metric/],
  ] as const)
    t.match(findProblems(expression, series).join(), problem, expression)
})

t.test('a running coordinator has the metrics of the definitions', async (t) => {
  const { instance } = await startTestCoordinator(t, { env: LISTEN })
  const text = await (await fetch(`${instance.metricsUrl}/metrics`)).text()
  const served = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`)
  const defined = (await listMetricDefinitions()).map(({ name, type }) => `${name} ${type}`)
  t.same(served.sort(), defined.sort())
})

t.test('each panel of the dashboard has a unit and valid expressions', async (t) => {
  const series = await listSeries()
  const charts = panels.filter(({ type }) => type !== 'row')
  t.ok(charts.length > 20)
  for (const { title, targets = [], fieldConfig } of charts) {
    t.ok(fieldConfig?.defaults.unit, `${title} has a unit`)
    t.ok(targets.length > 0, `${title} has an expression`)
    for (const { expr, datasource } of targets) {
      t.same(findProblems(replaceVariables(expr), series), [], `${title}: ${expr}`)
      t.equal(datasource.uid, `\${datasource}`, `${title} uses the variable of the data source`)
    }
  }
  const variables = dashboard.templating.list
  t.equal(variables[0].type, 'datasource')
  const [, metric = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(variables[1].definition) ?? []
  t.ok(series.get(metric)?.includes(label), 'the variable of the coordinator')
  const used = charts.flatMap(({ targets = [] }) =>
    targets.flatMap(({ expr }) => inspectExpression(replaceVariables(expr)).selectors),
  )
  const shown = new Set(used.map(({ metric }) => metric.replace(/_(bucket|count|sum)$/, '')))
  for (const { name } of await listMetricDefinitions())
    if (name.startsWith('boxwood_') && name !== 'boxwood_build_info') t.ok(shown.has(name), `shows ${name}`)
})

t.test('each alert has a valid expression, a severity and advice', async (t) => {
  const series = await listSeries()
  t.ok(rules.length >= 10)
  for (const { alert, expr, labels, annotations } of rules) {
    t.same(findProblems(expr, series), [], alert)
    t.match(labels.severity, /^(critical|warning)$/, alert)
    t.ok(annotations.summary && annotations.description, alert)
  }
  t.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length, 'the names differ')
})

t.test('the documentation has a row for each metric and each alert', async (t) => {
  const page = readFileSync(join(PROJECT_DIR, 'docs/monitoring.md'), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| `boxwood_'))
  const code = (name: string) => `\`${name}\``
  const expected = (await listMetricDefinitions())
    .filter(({ name }) => name.startsWith('boxwood_'))
    .map(
      ({ name, type, labels, help }) =>
        `| ${code(name)} | ${type} | ${labels.map(code).join(', ')} | ${help.replace(/\.$/, '')} |`,
    )
  const normalize = (row: string) => row.replace(/ +/g, ' ')
  t.same(rows.map(normalize), expected.sort().map(normalize))
  for (const { alert } of rules) t.match(page, code(alert))
})

t.test('promtool accepts the alert rules and the metrics', { skip: requires('promtool') }, async (t) => {
  const check = (args: string[], input = '') =>
    spawnSync('promtool', ['check', ...args], { input, encoding: 'utf8' })
  const result = check(['rules', ALERTS])
  t.equal(result.status, 0, result.stdout + result.stderr)
  const { instance } = await startTestCoordinator(t, { env: LISTEN })
  const text = await (await fetch(`${instance.metricsUrl}/metrics`)).text()
  // The metrics of prom-client itself have names that promtool advises against.
  const own = text.split('\n').filter((line) => /^(# (HELP|TYPE) )?boxwood_/.test(line))
  const metrics = check(['metrics'], `${own.join('\n')}\n`)
  t.equal(metrics.status, 0, metrics.stdout + metrics.stderr)
})
