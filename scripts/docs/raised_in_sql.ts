/** app.fail(409, 'state_conflict', …) and app.problem(…). */
export const RAISED_IN_SQL = /app\.(?:fail|problem)\(\s*(\d{3}),\s*'(\w+)'/g;
