// The type of a results table, and its rendering as Markdown.

export type Table = { title: string; columns: string[]; rows: string[][] }

export const formatMarkdown = ({ title, columns, rows }: Table): string =>
  [
    `### ${title}`,
    '',
    `| ${columns.join(' | ')} |`,
    `|${columns.map(() => '---').join('|')}|`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
    '',
  ].join('\n')
