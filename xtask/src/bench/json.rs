//! The figures for machines. `bench/README.md` says what the fields mean; they are not renamed.

use super::{parts::Shown, summary::Score, table::Row};

/// What readers check first: it changes when a field is taken away or means something else.
const FORMAT: u32 = 1;

pub(super) fn text(shown: &[Shown]) -> String {
    let Score { targets, met, missed, lost } =
        shown.iter().flat_map(Shown::verdicts).map(|(.., verdict)| verdict).collect();
    let mut tables = Vec::new();
    let mut failed = Vec::new();
    for part in shown {
        let names = format!("\"area\":{},\"part\":{}", string(&part.part.area), string(&part.part.name));
        for table in part.tables() {
            let rows: Vec<_> = table.rows.iter().map(row).collect();
            tables.push(format!(
                "{{{names},\"title\":{},\"unit\":{},\"rows\":[\n{}\n]}}",
                string(&table.title),
                string(&table.unit),
                rows.join(",\n")
            ));
        }
        if let Err(why) = &part.outcome {
            failed.push(format!("{{{names},\"why\":{}}}", string(why)));
        }
    }
    format!(
        "{{\"format\":{FORMAT},\n\
         \"summary\":{{\"targets\":{targets},\"met\":{met},\"missed\":{missed},\"lost\":{lost}}},\n\
         \"failed\":[{}],\n\"tables\":[\n{}\n]}}\n",
        failed.join(","),
        tables.join(",\n")
    )
}

fn row(row: &Row) -> String {
    let (best, to_best) = row.best_peer.clone().unzip();
    let fields = [
        ("name", string(&row.name)),
        ("role", string(&row.role)),
        ("rounds", row.rounds.to_string()),
        ("low", number(Some(row.value.low))),
        ("median", number(Some(row.value.median))),
        ("high", number(Some(row.value.high))),
        ("ratio_low", number(Some(row.ratio.low))),
        ("ratio", number(Some(row.ratio.median))),
        ("ratio_high", number(Some(row.ratio.high))),
        ("target", number(row.target)),
        ("verdict", row.verdict().map_or("null".to_owned(), |verdict| string(&verdict.to_string()))),
        ("best_peer", best.map_or("null".to_owned(), |best| string(&best))),
        ("ratio_to_best_peer", number(to_best)),
        ("ratio_to_floor", number(row.to_floor)),
    ];
    let fields = fields.map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", fields.join(","))
}

/// JSON has neither infinities nor what is not a number.
fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or("null".to_owned(), |value| value.to_string())
}

fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => quoted += &format!("\\u{:04x}", u32::from(control)),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::{
        super::table::{read, tests::LINES},
        *,
    };

    #[test]
    fn a_row_has_all_its_fields_and_null_for_what_is_not_known() {
        let tables = read(LINES).unwrap();
        assert_eq!(
            row(&tables[0].rows[1]),
            "{\"name\":\"ebbtide\",\"role\":\"ours\",\"rounds\":201,\"low\":29,\"median\":30,\"high\":31,\
             \"ratio_low\":0.29,\"ratio\":0.3,\"ratio_high\":0.31,\"target\":0.5,\"verdict\":\"met\",\
             \"best_peer\":\"monoio\",\"ratio_to_best_peer\":0.75,\"ratio_to_floor\":1.5}"
        );
        let peer = row(&tables[0].rows[0]);
        assert!(peer.contains("\"target\":null,\"verdict\":null,\"best_peer\":null"), "{peer}");
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(string("a \"b\"\\\n"), "\"a \\\"b\\\"\\\\\\u000a\"");
        assert_eq!(number(Some(f64::NAN)), "null");
    }
}
