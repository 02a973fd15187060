// A table of figures, as Markdown.

export type Table = { title: string; columns: string[]; rows: string[][] }

export const markdown = ({ title, columns, rows }: Table): string =>
  [
    `### ${title}`,
    '',
    `| ${columns.join(' | ')} |`,
    `|${columns.map(() => '---').join('|')}|`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
    '',
  ].join('\n')
