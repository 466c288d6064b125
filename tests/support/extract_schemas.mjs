// Print the protocol's JSON Schemas that the conformance suite carries, as {revision: schema}.
//
// The suite is one minified file: its schemas are object literals, declared one after another just before the
// table that names their revisions. A key of the table may be a constant.
import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";

const source = readFileSync(process.argv[2], "utf8");
const table = /const (\w+)=\{(?:(?:"[\d-]+"|\[(\w+)\]):\w+,?)+\};/.exec(source);
const [declaration, name, constant] = table;
const first = source.search(/\w+=\{\$schema:`http/);
const schemas = source.slice(first, table.index) + declaration;
const revision = constant ? new RegExp(`\\b${constant}=(\`[\\d-]+\`)`).exec(source)[1] : "``";
process.stdout.write(JSON.stringify(runInNewContext(`const ${constant ?? "_"}=${revision},${schemas}${name}`)));
